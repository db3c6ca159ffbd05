#pragma once

#include "core/context.h"
#include "core/tensor.h"
#include "model/ops/packed_weight.h"

namespace octavo {

/// y[n, o] = sum over i of x[n, i] * weight[o, i] + bias[o].
struct LinearArgs {
  Tensor x;          ///< [N, I], compute type; rows may be apart
  Tensor weight;     ///< [O, I], compute type
  Tensor bias = {};  ///< [O], compute type, or absent
  /// The same weight, read instead; null where weights still change.
  const PackedWeight* packed = nullptr;
};

/// Rows of x and y are a multiple of kRowMultiple in training, so that few shapes exist; any N
/// works.
///
/// @param y  [N, O], compute type or statistics type (logits), overwritten; rows may be apart. Must
///           not overlap x.
/// @throws InternalError  shapes or types disagree.
/// Sums are float32 for bf16 and float32, float64 for float64.
void linear_forward(Context& ctx, const LinearArgs& in, Tensor y);

/// Where linear_backward puts its results; an absent tensor is not computed.
struct LinearGradients {
  Tensor dx = {};          ///< [N, I], compute type; overwritten, or added to if add_to_dx
  bool add_to_dx = false;  ///< for inputs used more than once, e.g. the encoder's output
  Tensor dweight = {};     ///< [O, I], statistics type, added to
  Tensor dbias = {};       ///< [O], statistics type, added to
};

/// dx = dy weight;  dweight += dy^T x;  dbias += column sums of dy.
///
/// @param in  as given to linear_forward (bias is not read).
/// @param dy  [N, O], compute type; rows may be apart. Tail rows must be zero.
void linear_backward(Context& ctx, const LinearArgs& in, const Tensor& dy,
                     const LinearGradients& out);

}  // namespace octavo
