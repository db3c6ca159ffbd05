#pragma once

#include <algorithm>
#include <cstdint>

#include "core/dtype.h"
#include "model/ops/attention.h"

namespace octavo {

/// Rows of a tile start this many bytes apart, or a multiple: whole vectors of any instruction set.
inline constexpr std::int64_t kTileAlignment = 64;

/// One thread's scratch for attention: one head of one sentence, in the compute type C. Queries are
/// taken in tiles of two vectors, one query per lane, so that softmax, dropout and the sums over
/// keys run down the lanes; keys and values lie there whole.
template <typename C>
struct AttentionBuffers {
  static constexpr std::int64_t kPad = kTileAlignment / static_cast<std::int64_t>(sizeof(C));
  static constexpr std::int64_t kTile = 2 * kPad;  ///< most queries of a tile; pitch of what has
                                                   ///< one column per query

  std::int64_t key_pitch, value_pitch;  ///< widths rounded up to kPad
  C* keys;                              ///< [keys, key_pitch]
  C* values;                            ///< [keys, value_pitch]
  C* queries;                           ///< [kTile, key_pitch]
  C* queries_across;                    ///< [key_pitch, kTile]: the same transposed and scaled
  C* scores;                            ///< [keys, kTile]: scores, then weights
  C* out;                               ///< [kTile, max of pitches]
  C* lse;                               ///< [kTile]
  C* factor;                            ///< [kTile]: what a query's sums are multiplied by
  // For backward only:
  C* dout;         ///< [kTile, value_pitch]
  C* dout_across;  ///< [value_pitch, kTile]
  C* dscores;      ///< [keys, kTile]: gradients of the weights, then of the scores
  C* dropped;      ///< [keys, kTile]: the weights under dropout
  C* dkeys;        ///< [keys, key_pitch]
  C* dvalues;      ///< [keys, value_pitch]

  std::int64_t elements = 0;  ///< size of it all

  /// Lays the buffers out from `memory` on; with null, only to learn `elements`.
  AttentionBuffers(const AttentionSpec& spec, std::int64_t longest_keys, bool backward, C* memory)
      : key_pitch(round_up(spec.key_width, kPad)), value_pitch(round_up(spec.value_width, kPad)) {
    const auto take = [&](std::int64_t rows, std::int64_t pitch) {
      C* taken = memory == nullptr ? nullptr : memory + elements;
      elements += rows * pitch;
      return taken;
    };
    keys = take(longest_keys, key_pitch);
    values = take(longest_keys, value_pitch);
    queries = take(kTile, key_pitch);
    queries_across = take(key_pitch, kTile);
    scores = take(longest_keys, kTile);
    out = take(kTile, std::max(key_pitch, value_pitch));
    lse = take(1, kTile);
    factor = take(1, kTile);
    const std::int64_t tile = backward ? kTile : 0, longest = backward ? longest_keys : 0;
    dout = take(tile, value_pitch);
    dout_across = take(value_pitch, tile);
    dscores = take(longest, kTile);
    dropped = take(longest, kTile);
    dkeys = take(longest, key_pitch);
    dvalues = take(longest, value_pitch);
  }
};

/// Pairs (sentence, head) that one part of the work takes, numbered sentence * heads + head.
struct PairRange {
  std::int64_t begin, end;
};

/// Cuts the pairs into `parts` ranges of nearly equal cost: range number `part`. Each pair is one
/// thread's work, so results don't depend on the number of parts.
PairRange attention_part(const AttentionArgs& in, std::int64_t part, std::int64_t parts);

/// All of it, in the unit of for_parts().
std::int64_t attention_work(const AttentionArgs& in);

/// Zeroes rows [first, dim(0)).
void zero_rows_from(const Tensor& t, std::int64_t first);

}  // namespace octavo
