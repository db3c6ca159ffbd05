#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "core/arena.h"
#include "core/context.h"
#include "core/tensor.h"

namespace octavo {

/// What a weight that no longer changes is kept as.
enum class WeightFormat : unsigned char {
  compute,  ///< the type that the model computes in, f32 or bf16
  int8,     ///< eight bits and a scale for each output, of an f32 weight
};

/// A weight [O, I] that no longer changes, in the layout that products read fastest: up to twice as
/// fast as rows side by side where the other operand has few rows, as in decoding.
///
/// int8: weight[o, i] is near scale[o] * q[o, i], with q from -127 to 127 and scale[o] the row's
/// largest magnitude / 127. A product rounds each of its input's rows likewise, sums integers
/// exactly, and returns what the two scales make of the sum.
class PackedWeight {
 public:
  /// @param weight  [O, I], f32 or bf16, both extents positive; on a plan nothing is read or kept.
  /// @throws UserError  this processor has no bf16 products, or no exact ones of int8.
  PackedWeight(Context& ctx, const Tensor& weight, WeightFormat format);
  PackedWeight(const PackedWeight&) = delete;
  PackedWeight& operator=(const PackedWeight&) = delete;
  ~PackedWeight();

  std::int64_t outputs() const { return outputs_; }
  std::int64_t inputs() const { return inputs_; }
  DType type() const { return type_; }  ///< of the weight it was made of
  WeightFormat format() const { return format_; }
  const Tensor& scales() const { return scales_; }  ///< int8: [O], f32

 private:
  friend class PackedProducts;
  struct Layout;

  std::int64_t outputs_, inputs_;
  DType type_;
  WeightFormat format_;
  std::unique_ptr<Layout> layout_;
  std::unique_ptr<Arena> memory_;
  Tensor data_, scales_;
};

/// y [N, O] = x [N, I] times a packed weight, plus bias.
struct PackedProduct {
  Tensor x;     ///< type of the weight; rows may be apart
  Tensor bias;  ///< [O], the same type, or absent
  const PackedWeight& weight;
  Tensor y;  ///< type of the weight, or f32; rows side by side: oneDNN is slow otherwise
};

/// Products with packed weights through oneDNN, each on one thread: decoding runs several batches
/// at once instead. Primitives are made at the first use of a shape and kept.
///
/// One per Context: ctx.state<PackedProducts>().
class PackedProducts {
 public:
  explicit PackedProducts(Context& ctx);
  PackedProducts(const PackedProducts&) = delete;
  PackedProducts& operator=(const PackedProducts&) = delete;
  ~PackedProducts();

  /// Bytes of scratch that run() needs; on a plan as well. N must be positive.
  std::int64_t workspace(const PackedProduct& product);
  /// @param workspace  at least as many bytes, aligned to Arena::kAlignment.
  void run(const PackedProduct& product, std::byte* workspace);

 private:
  struct Library;
  struct Shape;
  struct Plan;
  struct Hash {
    std::size_t operator()(const Shape& shape) const;
  };
  /// Of the product's first `rows` rows.
  Plan& plan(const PackedProduct& product, std::int64_t rows);
  void run_rows(const PackedProduct& product, std::byte* workspace);

  Context& ctx_;
  std::unique_ptr<Library> library_;
  std::unordered_map<Shape, std::unique_ptr<Plan>, Hash> plans_;
};

}  // namespace octavo
