#pragma once

#include "core/context.h"
#include "model/ops/attention.h"

namespace octavo {

/// Attention of one new token per hypothesis over keys and values that never move: those of its own
/// past, written step by step, or of its source. A table says where each row lies.
struct CachedAttentionArgs {
  AttentionSpec spec;   ///< mask is not read: the past is all there is
  Tensor q;             ///< [R, heads * key_width], compute type; rows may be apart
  Tensor cache;         ///< [slots, heads * (key_width + value_width)]: k then v; rows may be apart
  Tensor slots;         ///< i32 [R, S]: slots[r, s] is the cache row of the s-th token that r sees
  std::int64_t steps;   ///< tokens to look at, 1 to S: of r's past, the newest included
  Tensor lengths = {};  ///< i32 [R]: tokens that r sees, 1 to `steps`; absent: all see `steps`
};

/// @param out  [R, heads * value_width], compute type, overwritten.
void cached_attention_forward(Context& ctx, const CachedAttentionArgs& in, Tensor out);

}  // namespace octavo
