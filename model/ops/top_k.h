#pragma once

#include <cstdint>
#include <span>

#include "core/context.h"
#include "core/tensor.h"

namespace octavo {

/// What a user is told when a model computes no numbers.
inline constexpr const char* kOutputIsNoNumber =
    "the model's output is not a number: its weights are damaged, or its training went astray. Try "
    "an earlier checkpoint";

struct TopKArgs {
  Tensor logits;            ///< [R, Vp], compute type
  std::int64_t vocabulary;  ///< V <= Vp: pieces that exist
  std::int64_t k;           ///< 1 <= k <= V - banned
  std::span<const std::int32_t> banned =
      {};  ///< pieces that are never chosen (they keep their mass)
};

/// The k likeliest pieces of every row with their log softmax, best first; ties go to the lower id.
///
/// @param log_probabilities  [R, k], statistics type.
/// @param ids                i32 [R, k].
/// @throws UserError      on the CPU: a logit is NaN or infinity (minus infinity is fine:
///                        probability 0).
/// @throws InternalError  shapes or types disagree.
void top_k(Context& ctx, const TopKArgs& in, Tensor log_probabilities, Tensor ids);

}  // namespace octavo
