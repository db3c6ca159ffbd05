#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/philox.h"
#include "core/tensor.h"

namespace octavo::testkit {

/// A tensor with memory of its own, fenced by canaries, for tests. Converts to Tensor.
///
/// Starts as quiet NaNs (zeros for integers), so that reading what nobody wrote shows.
class TestTensor {
 public:
  TestTensor() = default;  ///< absent
  TestTensor(std::initializer_list<std::int64_t> shape, DType type);
  /// Values given in row-major order, rounded to `type`.
  TestTensor(std::initializer_list<std::int64_t> shape, DType type,
             const std::vector<double>& values);
  TestTensor(const TestTensor& other);
  TestTensor& operator=(const TestTensor& other);

  /// Normal deviates of mean 0, rounded to `type`.
  static TestTensor random(std::initializer_list<std::int64_t> shape, DType type,
                           RandomStream& stream, double deviation = 1);
  static TestTensor zeros(std::initializer_list<std::int64_t> shape, DType type);

  operator const Tensor&() const { return view_; }
  const Tensor& view() const { return view_; }

  /// Values in row-major order.
  std::vector<double> values() const;
  void set(const std::vector<double>& values);
  /// One element by its row-major number.
  double get(std::int64_t i) const;
  void set(std::int64_t i, double value);
  /// The same values rounded to another type.
  TestTensor as(DType type) const;
  /// Whether both hold the same bytes.
  bool same_bytes(const TestTensor& other) const;
  /// Whether nobody wrote just before or just after the tensor.
  bool fence_intact() const;

 private:
  void allocate();
  Tensor view_;
  std::vector<std::byte> memory_;
};

/// Values of a view (rows may be apart) in row-major order, as double.
std::vector<double> values_of(const Tensor& t);

/// "" if every element of `actual` lies within absolute + relative * |expected| of `expected`;
/// else a line that names the worst element. A NaN agrees only with a NaN.
struct Tolerance {
  double relative;
  double absolute;
};
std::string mismatch(const Tensor& actual, const std::vector<double>& expected,
                     Tolerance tolerance);

/// What one rounding of a result costs, with some room for the order of sums: f64 1e-12,
/// f32 2e-5, bf16 1e-2 relative; the same times `magnitude` absolute.
Tolerance tolerance_of(DType type, double magnitude = 1);

}  // namespace octavo::testkit
