#pragma once

#include <string_view>
#include <utility>

#include "core/context.h"
#include "core/philox.h"
#include "core/tensor.h"

namespace octavo {

/// relu: max(0, x). gelu: the tanh form, 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
/// Source: Hendrycks, Gimpel (2016), arXiv:1606.08415.
enum class Activation : unsigned char { relu, gelu };

struct ActivationArgs {
  Tensor x;  ///< [N, F], compute type, after the bias
  Activation kind = Activation::relu;
  Dropout dropout = {};  ///< ordinals [N]
};

/// y = dropout(activation(x)).
/// @param y  [N, F], overwritten; for relu it may be x itself.
void activation_forward(Context& ctx, const ActivationArgs& in, Tensor y);

/// dx = dropout mask * dy * activation'(x).
///
/// @param in  for gelu as in forward. For relu in.x is not read: y tells both masks, since what was
///            cut or dropped is zero there.
/// @param y   [N, F], what forward wrote; read for relu only.
/// @param dx  [N, F], overwritten; may be dy.
void activation_backward(Context& ctx, const ActivationArgs& in, const Tensor& y, const Tensor& dy,
                         Tensor dx);

}  // namespace octavo
