#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace octavo::testkit {

/// A float64 tensor that a loss depends on, and what backward says is its gradient.
struct GradientCheck {
  std::string_view name;
  Tensor value;     ///< f64, changed and restored while checking; rows may be apart
  Tensor gradient;  ///< f64, the same shape
};

/// "" if central differences of `loss` agree with every gradient given; else one line per tensor,
/// naming its worst element:
///
///     d loss / d x[2]: backward says -0.17713, central difference says 0.342315 (relative error
///     0.519445, allowed 1e-07)
///
/// Relative error is |a - b| / max(1, |a|, |b|). At most a few hundred elements of a tensor are
/// checked, spread evenly.
/// @param loss  recomputes the loss from the tensors' present values.
std::string grad_mismatch(const std::function<double()>& loss,
                          const std::vector<GradientCheck>& checks, double tolerance);

/// sum over i of weights[i] * y[i]: a loss whose gradient by y is `weights`, so that no two
/// elements of y weigh the same.
double weighted_sum(const Tensor& weights, const Tensor& y);

}  // namespace octavo::testkit
