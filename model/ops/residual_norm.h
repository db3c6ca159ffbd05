#pragma once

#include "core/context.h"
#include "core/philox.h"
#include "core/tensor.h"

namespace octavo {

/// s = residual + dropout(branch);  y[n, d] = (s[n, d] - mean[n]) * rstd[n] * gamma[d] + beta[d].
///
/// One pass over memory for what every sublayer needs: post-norm uses y as the next residual,
/// pre-norm uses s as the next residual and y as the next sublayer's input.
struct ResidualNormArgs {
  Tensor residual;        ///< [N, D], compute type
  Tensor branch = {};     ///< [N, D], compute type; absent: a plain norm, s is the residual
  Tensor gamma, beta;     ///< [D], statistics type
  double epsilon = 1e-5;  ///< > 0, in units of s squared
  Dropout dropout = {};   ///< of the branch; ordinals [N]
};

/// What residual_norm_backward reads again.
struct ResidualNormSaved {
  /// [N, D], compute type: s. Written only if there is a branch; without one, pass the residual to
  /// backward here.
  Tensor sum;
  Tensor mean;  ///< [N], statistics type
  Tensor rstd;  ///< [N], statistics type: 1 / sqrt(variance + epsilon)
};

/// @param y  [N, D], compute type, overwritten. May be the branch; must not be residual or sum.
/// saved.sum may be the residual's own memory (in place).
/// The variance takes a second pass over s as rounded to the compute type: E[x^2] - E[x]^2 loses
/// every digit when |mean| >> deviation. Source: Ba, Kiros, Hinton (2016), arXiv:1607.06450,
/// section 3.
void residual_norm_forward(Context& ctx, const ResidualNormArgs& in, Tensor y,
                           const ResidualNormSaved& saved);

struct ResidualNormGradients {
  Tensor dsum_in = {};  ///< [N, D]: gradient that reaches s by another way (pre-norm), or absent
  Tensor dresidual;     ///< [N, D], overwritten; may be dy or dsum_in
  Tensor dbranch = {};  ///< [N, D], overwritten: dresidual under the dropout mask; or absent
  Tensor dgamma = {};   ///< [D], statistics type, added to; absent if frozen
  Tensor dbeta = {};    ///< the same
};

/// @param in  as in forward; residual and branch are not read (saved.sum is), so they may be
/// absent.
/// @param dy  [N, D], compute type.
/// Rows are summed into dgamma and dbeta in blocks of a fixed size, so the sum does not depend on
/// the number of threads.
void residual_norm_backward(Context& ctx, const ResidualNormArgs& in,
                            const ResidualNormSaved& saved, const Tensor& dy,
                            const ResidualNormGradients& out);

}  // namespace octavo
