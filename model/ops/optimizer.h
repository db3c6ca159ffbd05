#pragma once

#include <cstdint>
#include <span>

#include "core/context.h"
#include "core/tensor.h"

namespace octavo {

/// A run of neighbouring parameters that are treated alike. What no run covers is frozen.
struct ParameterRun {
  std::int64_t begin, end;  ///< elements of the flat buffers
  double weight_decay = 0;  ///< decoupled (AdamW), per unit of rate
  double rate_scale = 1;
};

/// What the gradient's norm decides, kept on the device: f64 [3].
enum class StepControl : int {
  norm = 0,    ///< global norm of the gradient, before clipping
  scale = 1,   ///< what the gradient is multiplied by: min(1, clip / norm)
  finite = 2,  ///< 1, or 0 when the norm is infinite or NaN: the update is skipped
};

/// Global L2 norm over the runs; sums in float64 in blocks of a fixed size, so that neither threads
/// nor run lengths change the result.
/// @param gradient  [P], statistics type.
/// @param clip      > 0: largest norm let through; 0: no clipping.
/// @param control   f64 [3], overwritten: StepControl.
void gradient_norm(Context& ctx, const Tensor& gradient, std::span<const ParameterRun> runs,
                   double clip, Tensor control);

struct AdamArgs {
  Tensor master, gradient, first, second;  ///< [P], statistics type; gradient is not changed
  Tensor weights = {};                     ///< [P], bf16 copy of master to be written, or absent
  std::span<const ParameterRun> runs;
  Tensor control;  ///< f64 [3] from gradient_norm
  double rate;     ///< of this update
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;
  std::int64_t count;  ///< updates so far with this one, from 1: bias correction
};

/// One pass over memory: m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
/// w -= rate * (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon) + decay * w). Nothing changes if
/// control says that the gradient is not finite.
/// Source: Kingma, Ba (2015), arXiv:1412.6980; Loshchilov, Hutter (2019), arXiv:1711.05101.
void adam(Context& ctx, const AdamArgs& in);

/// average += (1 - decay) * (master - average). Shapes [P], statistics type.
void exponential_average(Context& ctx, const Tensor& master, double decay, Tensor average);

}  // namespace octavo
