#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/dtype.h"
#include "core/error.h"

namespace octavo {

/// A view of elements somebody else owns: a pointer, up to four dimensions and an element type.
///
/// Elements are row-major and contiguous except that rows of a 2-D view may lie `row_stride()`
/// elements apart, so that q, k and v can be columns of one product. A default-made Tensor is
/// "absent": optional arguments of ops use it. On a plan (core/context.h) data() is never read.
class Tensor {
 public:
  static constexpr int kMaxRank = 4;

  Tensor() = default;
  Tensor(void* data, std::initializer_list<std::int64_t> shape, DType type);

  bool present() const { return rank_ > 0; }
  int rank() const { return rank_; }
  DType dtype() const { return type_; }
  /// Size of dimension i, 0 <= i < rank().
  std::int64_t dim(int i) const {
    expect(i >= 0 && i < rank_, "Tensor::dim: no such dimension");
    return shape_[static_cast<std::size_t>(i)];
  }
  /// Elements between the starts of two neighbouring entries of dimension 0.
  std::int64_t row_stride() const { return row_stride_; }
  std::int64_t elements() const;
  /// elements() * bytes of one element.
  std::int64_t bytes() const;
  bool contiguous() const;

  void* raw() const { return data_; }
  /// Typed pointer to the first element. @throws InternalError if T is not the element type.
  template <typename T>
  T* data() const {
    expect(kDTypeOf<T> == type_, "Tensor::data: asked for another element type than it holds");
    return static_cast<T*>(data_);
  }

  /// Rows [begin, begin + count) of dimension 0.
  Tensor rows(std::int64_t begin, std::int64_t count) const;
  /// Columns [begin, begin + count) of a 2-D view: keeps the row stride.
  Tensor columns(std::int64_t begin, std::int64_t count) const;
  /// The same contiguous elements under another shape.
  Tensor reshaped(std::initializer_list<std::int64_t> shape) const;

  /// "f32 [3, 512]"
  std::string description() const;

 private:
  void* data_ = nullptr;
  std::array<std::int64_t, kMaxRank> shape_{};
  std::int64_t row_stride_ = 0;
  int rank_ = 0;
  DType type_ = DType::f32;
};

/// @throws InternalError naming `name` unless t is present with exactly this shape.
void expect_shape(const Tensor& t, std::initializer_list<std::int64_t> shape,
                  std::string_view name);
/// @throws InternalError naming `name` unless t has this element type.
void expect_dtype(const Tensor& t, DType type, std::string_view name);

}  // namespace octavo
