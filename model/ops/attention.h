#pragma once

#include "core/context.h"
#include "core/philox.h"
#include "core/token_batch.h"

namespace octavo {

enum class Mask : unsigned char {
  none,   ///< every query of a sentence sees every key of the same sentence
  causal  ///< query i sees keys 0 to i of its sentence
};

/// What kind of attention, apart from the data.
struct AttentionSpec {
  std::int64_t heads;
  std::int64_t key_width;    ///< of one head of q and k
  std::int64_t value_width;  ///< of one head of v and of the output
  Mask mask = Mask::none;
  double scale = 1;  ///< of q k^T; 1 / sqrt(key_width) in the Transformer paper
};

/// Scaled dot-product attention on packed sentences: query b's tokens see only key sentence b's.
///
///     p[i, j] = softmax over j of scale * q[i] . k[j];   out[i] = sum over j of dropout(p)[i, j]
///     v[j]
///
/// for every head. A sentence without keys gives zeros (and minus infinity for lse).
struct AttentionArgs {
  AttentionSpec spec;
  Tensor q;  ///< [queries.rows, heads * key_width], compute type; rows may be apart
  Tensor k;  ///< [keys.rows, heads * key_width], the same
  Tensor v;  ///< [keys.rows, heads * value_width], the same
  const PackedTokens& queries;
  const PackedTokens& keys;  ///< as many sentences as queries; causal: the same lengths
  Dropout dropout = {};      ///< of the weights; ordinals are the queries'. See core/philox.h
};

/// @param out  [queries.rows, heads * value_width], compute type, overwritten; tail rows become
/// zero.
/// @param lse  [queries.rows, heads], statistics type: log of the sum of exponentials of the scaled
///             scores, for backward; zero in tail rows. Absent when only decoding.
/// The weights [queries, keys] of one head of one sentence exist only in cache.
void attention_forward(Context& ctx, const AttentionArgs& in, Tensor out, Tensor lse);

struct AttentionGradients {
  Tensor dq, dk,
      dv;  ///< shapes of q, k, v, compute type, overwritten; rows may be apart; tails zero
};

/// @param out, lse  what forward wrote.
/// @param dout      [queries.rows, heads * value_width], compute type.
void attention_backward(Context& ctx, const AttentionArgs& in, const Tensor& out, const Tensor& lse,
                        const Tensor& dout, const AttentionGradients& gradients);

/// The weights themselves, before dropout, for looking at them.
/// @param weights  [queries.tokens, heads, keys.longest], statistics type; zero beyond a sentence.
void attention_weights(Context& ctx, const AttentionArgs& in, Tensor weights);

}  // namespace octavo
