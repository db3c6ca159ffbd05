#pragma once

#include "core/context.h"
#include "core/philox.h"
#include "core/token_batch.h"

namespace octavo {

/// y[n, d] = dropout(scale * table[ids[n], d] + positions[position[n], d]).
struct EmbeddingArgs {
  const PackedTokens& tokens;  ///< ids in [0, V), positions in [0, P): checked on the CPU
  Tensor table;                ///< [V, D], compute type
  Tensor positions = {};       ///< [P, D], statistics type, or absent
  double scale = 1;            ///< sqrt(D) in the Transformer paper
  Dropout dropout = {};
};

/// @param y  [tokens.rows, D], compute type, overwritten; tail rows become zero.
/// @throws InternalError  shapes disagree, or an id or position is out of range.
void embedding_forward(Context& ctx, const EmbeddingArgs& in, Tensor y);

/// dtable[id] += scale * masked dy of each of its tokens, in token order (no atomics: the sum
/// repeats bitwise); dpositions likewise.
///
/// @param dy          [tokens.rows, D], compute type.
/// @param dtable      [V, D], statistics type, added to; absent if frozen.
/// @param dpositions  [P, D], statistics type, added to; absent for sinusoids.
void embedding_backward(Context& ctx, const EmbeddingArgs& in, const Tensor& dy, Tensor dtable,
                        Tensor dpositions);

}  // namespace octavo
