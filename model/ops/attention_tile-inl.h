// What forward and backward attention share: one tile of queries against all keys of a sentence,
// one head, with one query per lane.

#if defined(OCTAVO_MODEL_OPS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_MODEL_OPS_ATTENTION_TILE_INL_H_
#undef OCTAVO_MODEL_OPS_ATTENTION_TILE_INL_H_
#else
#define OCTAVO_MODEL_OPS_ATTENTION_TILE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "model/ops/attention_buffers.h"
#include "model/ops/attention_dropout-inl.h"
#include "model/ops/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {

/// One head of one sentence: where its rows and columns begin.
template <typename T>
struct HeadView {
  std::int64_t head;
  std::int64_t query_row, queries;  ///< first row and number of queries
  std::int64_t key_row, keys;
  const T *q, *k, *v;

  HeadView(const AttentionArgs& in, std::int64_t pair) : head(pair % in.spec.heads) {
    const std::int64_t sentence = pair / in.spec.heads;
    const auto* query_offsets = in.queries.offsets.data<std::int32_t>() + sentence;
    const auto* key_offsets = in.keys.offsets.data<std::int32_t>() + sentence;
    query_row = query_offsets[0];
    queries = query_offsets[1] - query_row;
    key_row = key_offsets[0];
    keys = key_offsets[1] - key_row;
    q = element(in.q, query_row, head * in.spec.key_width);
    k = element(in.k, key_row, head * in.spec.key_width);
    v = element(in.v, key_row, head * in.spec.value_width);
  }
  static T* element(const Tensor& t, std::int64_t row, std::int64_t column) {
    return t.data<T>() + row * t.row_stride() + column;
  }
};

/// Queries [first, first + queries) of a head and the keys they see.
struct Tile {
  std::int64_t first, queries, keys, vectors;
  bool causal;

  /// Keys [0, whole) are seen by every lane of a vector, [whole, seen) by some, the rest by none.
  std::int64_t whole(std::int64_t lane) const {
    return causal ? std::min(keys, first + lane + 1) : keys;
  }
  std::int64_t seen(std::int64_t lane, std::int64_t L) const {
    return causal ? std::min(keys, first + lane + L) : keys;
  }
};

template <class D>
HWY_INLINE Tile make_tile(D d, std::int64_t first, std::int64_t queries, std::int64_t keys,
                          bool causal) {
  const std::int64_t count = std::min(2 * lanes(d), queries - first);
  return {.first = first,
          .queries = count,
          .keys = causal ? std::min(keys, first + count) : keys,
          .vectors = (count + lanes(d) - 1) / lanes(d),
          .causal = causal};
}

/// Calls f(key, mask) for every key that lanes [lane, lane + L) see, mask being Whole{} where all
/// of them do.
template <class D, typename F>
HWY_INLINE void for_keys(D d, const Tile& tile, std::int64_t lane, F f) {
  const std::int64_t whole = tile.whole(lane), seen = tile.seen(lane, lanes(d));
  for (std::int64_t k = 0; k < whole; ++k) f(k, Whole{});
  for (std::int64_t k = whole; k < seen; ++k) {
    f(k, hn::Not(hn::FirstN(d, static_cast<std::size_t>(k - tile.first - lane))));
  }
}
template <class D>
HWY_INLINE hn::Vec<D> where_seen(D, Whole, hn::Vec<D> v, hn::Vec<D>) {
  return v;
}
template <class D>
HWY_INLINE hn::Vec<D> where_seen(D, hn::Mask<D> mask, hn::Vec<D> v, hn::Vec<D> otherwise) {
  return hn::IfThenElse(mask, v, otherwise);
}

/// Copies the tile's rows of a matrix to `rows` and transposes them into `across`, times `scale`.
/// Lanes without a query get zeros.
template <class D, typename T, typename C>
HWY_INLINE void pack_queries(D d, const Tile& tile, const T* from, std::int64_t stride,
                             std::int64_t width, std::int64_t pitch, double scale, C* rows,
                             C* across) {
  pack_rows(from, stride, tile.queries, width, rows, pitch);
  const std::int64_t all = tile.vectors * lanes(d);
  zero_vectors(rows + tile.queries * pitch, (all - tile.queries) * pitch);
  transpose(rows, pitch, all, width, static_cast<C>(scale), across, AttentionBuffers<C>::kTile);
}

/// to[key, query] = sum over c of rows[key, c] * across[c, query], where the query sees the key.
template <typename C>
HWY_INLINE void multiply_keys(const Tile& tile, const C* rows, std::int64_t pitch,
                              std::int64_t width, const C* across, C* to) {
  multiply_tile<false>(TileProduct<C>{.a = rows,
                                      .a_pitch = pitch,
                                      .b = across,
                                      .b_pitch = AttentionBuffers<C>::kTile,
                                      .c = to,
                                      .c_pitch = AttentionBuffers<C>::kTile,
                                      .rows = tile.keys,
                                      .vectors = tile.vectors,
                                      .depth = width,
                                      .skip = tile.causal ? Skip::columns_before : Skip::nothing,
                                      .diagonal = tile.first});
}

/// to[query, c] = sum over keys of weights[key, query] * rows[key, c].
template <class D, typename C>
HWY_INLINE void multiply_weights(D d, const Tile& tile, const C* weights, const C* rows,
                                 std::int64_t pitch, std::int64_t width, C* to) {
  multiply_tile<true>(TileProduct<C>{.a = weights,
                                     .a_pitch = AttentionBuffers<C>::kTile,
                                     .b = rows,
                                     .b_pitch = pitch,
                                     .c = to,
                                     .c_pitch = pitch,
                                     .rows = tile.queries,
                                     .vectors = (width + lanes(d) - 1) / lanes(d),
                                     .depth = tile.keys,
                                     .skip = tile.causal ? Skip::depth_after : Skip::nothing,
                                     .diagonal = tile.first});
}

/// Zeros for the keys that no lane of a vector sees, which products of whole blocks still read.
template <class D, typename C>
HWY_INLINE void zero_unseen(D d, const Tile& tile, C* weights) {
  for (std::int64_t lane = 0; lane < tile.queries; lane += lanes(d)) {
    for (std::int64_t k = tile.seen(lane, lanes(d)); k < tile.keys; ++k) {
      hn::StoreU(hn::Zero(d), d, weights + k * AttentionBuffers<C>::kTile + lane);
    }
  }
}

}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
