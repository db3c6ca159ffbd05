#pragma once

#include "core/context.h"
#include "model/ops/attention.h"

namespace octavo {

/// Attention of one new token per hypothesis over the keys and values of its own past, which were
/// written step by step and never move: a table says where each ancestor's row lies.
struct CachedAttentionArgs {
  AttentionSpec spec;  ///< mask is not read: the past is all there is
  Tensor q;            ///< [R, heads * key_width], compute type; rows may be apart
  Tensor cache;        ///< [slots, heads * (key_width + value_width)]: k then v; rows may be apart
  Tensor slots;        ///< i32 [R, S]: slots[r, s] is the cache row of r's ancestor at step s
  std::int64_t steps;  ///< tokens to look at, 1 to S, the newest included
};

/// @param out  [R, heads * value_width], compute type, overwritten.
void cached_attention_forward(Context& ctx, const CachedAttentionArgs& in, Tensor out);

}  // namespace octavo
