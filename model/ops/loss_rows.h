#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace octavo {

/// A chunk of projected_loss between its products.
struct LossRows {
  Tensor logits;          ///< [R, Vp], statistics type, rows apart; overwritten
  Tensor dlogits = {};    ///< [R, Vp], compute type, in the memory of logits; absent: no gradient
  Tensor labels;          ///< i32 [R]
  Tensor log_likelihood;  ///< [R], statistics type, or absent
  Tensor losses;          ///< f64 [R, 2], overwritten: loss and -log p(label) of each row
  Tensor sums;            ///< f64 [2], added to
  std::int64_t vocabulary;
  double label_smoothing;
  double gradient_scale;
};

}  // namespace octavo
