#pragma once

#include "core/context.h"
#include "core/tensor.h"

namespace octavo {

/// Projection to the vocabulary and cross-entropy with label smoothing, in chunks, so that [N, V]
/// logits never exist at once, and with the gradient taken while a chunk is in cache.
///
///     q = (1 - e) * onehot(label) + e / V;   loss[n] = -sum over v of q[v] * log softmax(x W^T)[n,
///     v]
///
/// over the V real pieces; rows of the weight from V up have no probability and no gradient.
/// Source: Szegedy et al. (2015), arXiv:1512.00567, section 7.
struct ProjectedLossArgs {
  Tensor x;                    ///< [N, D], compute type
  Tensor weight;               ///< [Vp, D], compute type, Vp >= V
  Tensor labels;               ///< i32 [N], -1: the row enters nothing
  std::int64_t vocabulary;     ///< V
  double label_smoothing = 0;  ///< e in [0, 1)
  double gradient_scale = 1;   ///< 1 / (target tokens of the whole update)
};

struct ProjectedLossOut {
  Tensor sums;          ///< f64 [2], added to: the loss, and -log p(label) without smoothing
  Tensor dx = {};       ///< [N, D], compute type, overwritten; zero where the label is -1. Absent:
                        ///< only the losses are wanted
  Tensor dweight = {};  ///< [Vp, D], statistics type, added to; absent if frozen
  Tensor log_likelihood = {};  ///< [N], statistics type: log p(label), 0 where the label is -1
};

/// Gradients are those of gradient_scale * loss. The chunk's logits live on the scratch stack.
void projected_loss(Context& ctx, const ProjectedLossArgs& in, const ProjectedLossOut& out);

}  // namespace octavo
