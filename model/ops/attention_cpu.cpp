#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/ops/attention_cpu.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "model/ops/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {
namespace {

/// Turns the tile's scores into exponentials of their distance from each query's largest one, and
/// writes the reciprocal of their sum to buffers.factor and its logarithm to buffers.lse.
template <class D, typename C>
HWY_INLINE void softmax_tile(D d, const Tile& tile, const AttentionBuffers<C>& buffers) {
  constexpr std::int64_t kPitch = AttentionBuffers<C>::kTile;
  const auto lowest = broadcast(d, -std::numeric_limits<double>::infinity());
  for (std::int64_t lane = 0; lane < tile.queries; lane += lanes(d)) {
    C* HWY_RESTRICT scores = buffers.scores + lane;
    auto largest = lowest;
    for_keys(d, tile, lane, [&](std::int64_t k, auto mask) HWY_ATTR {
      largest = hn::Max(largest, where_seen(d, mask, hn::LoadU(d, scores + k * kPitch), lowest));
    });
    auto sum = hn::Zero(d);
    for_keys(d, tile, lane, [&](std::int64_t k, auto mask) HWY_ATTR {
      const auto e = where_seen(
          d, mask, exp(d, hn::Sub(hn::LoadU(d, scores + k * kPitch), largest)), hn::Zero(d));
      sum = hn::Add(sum, e);
      hn::StoreU(e, d, scores + k * kPitch);
    });
    hn::StoreU(hn::Div(broadcast(d, 1), sum), d, buffers.factor + lane);
    hn::StoreU(hn::Add(largest, hn::Log(d, sum)), d, buffers.lse + lane);
  }
  zero_unseen(d, tile, buffers.scores);
}

/// Zeroes the weights that fall and lets the factors make up for them.
template <class D, typename C>
HWY_INLINE void drop_tile(D d, const Tile& tile, const Dropout& dropout, std::int64_t head,
                          const std::int64_t* ordinals, const AttentionBuffers<C>& buffers) {
  constexpr std::int64_t kPitch = AttentionBuffers<C>::kTile;
  const TileDropout<D> numbers(d, dropout, head, ordinals, tile.queries);
  for (std::int64_t lane = 0; lane < tile.queries; lane += lanes(d)) {
    C* HWY_RESTRICT weights = buffers.scores + lane;
    numbers.for_keys(d, lane, tile.seen(lane, lanes(d)), [&](std::int64_t k, auto kept) HWY_ATTR {
      hn::StoreU(hn::IfThenElseZero(kept, hn::LoadU(d, weights + k * kPitch)), d,
                 weights + k * kPitch);
    });
    C* HWY_RESTRICT factor = buffers.factor + lane;
    hn::StoreU(hn::Mul(hn::LoadU(d, factor), broadcast(d, dropout.scale())), d, factor);
  }
}

/// Weights of one tile before dropout, up to the factor: buffers.scores, factor and lse.
template <class D, typename T, typename C>
HWY_INLINE void weigh_tile(D d, const AttentionArgs& in, const HeadView<T>& head, const Tile& tile,
                           const AttentionBuffers<C>& buffers) {
  pack_queries(d, tile, head.q + tile.first * in.q.row_stride(), in.q.row_stride(),
               in.spec.key_width, buffers.key_pitch, in.spec.scale, buffers.queries,
               buffers.queries_across);
  multiply_keys(tile, buffers.keys, buffers.key_pitch, in.spec.key_width, buffers.queries_across,
                buffers.scores);
  softmax_tile(d, tile, buffers);
}

template <typename T>
void attention_head(const AttentionArgs& in, std::int64_t pair, const Tensor& out,
                    const Tensor& lse, const AttentionBuffers<ComputeType<T>>& buffers) {
  using C = ComputeType<T>;
  const VectorTag<T> d;
  const AttentionSpec& spec = in.spec;
  const HeadView<T> head(in, pair);
  pack_rows(head.k, in.k.row_stride(), head.keys, spec.key_width, buffers.keys, buffers.key_pitch);
  pack_rows(head.v, in.v.row_stride(), head.keys, spec.value_width, buffers.values,
            buffers.value_pitch);
  for (std::int64_t first = 0; first < head.queries; first += 2 * lanes(d)) {
    const Tile tile = make_tile(d, first, head.queries, head.keys, spec.mask == Mask::causal);
    const std::int64_t row = head.query_row + first;
    weigh_tile(d, in, head, tile, buffers);
    for (std::int64_t q = 0; lse.present() && q < tile.queries; ++q) {
      lse.data<C>()[(row + q) * spec.heads + head.head] = buffers.lse[q];
    }
    if (in.dropout.on()) {
      drop_tile(d, tile, in.dropout, head.head, in.dropout.ordinals.data<std::int64_t>() + row,
                buffers);
    }
    multiply_weights(d, tile, buffers.scores, buffers.values, buffers.value_pitch, spec.value_width,
                     buffers.out);
    if (head.keys == 0) zero_vectors(buffers.factor, tile.queries);
    unpack_rows(buffers.out, buffers.value_pitch, tile.queries, spec.value_width, buffers.factor,
                HeadView<T>::element(out, row, head.head * spec.value_width), out.row_stride());
  }
}

template <typename T>
void attention_pairs(const AttentionArgs& in, PairRange pairs, const Tensor& out, const Tensor& lse,
                     const Tensor& memory) {
  const AttentionBuffers<ComputeType<T>> buffers(in.spec, in.keys.longest, false,
                                                 memory.data<ComputeType<T>>());
  for (std::int64_t pair = pairs.begin; pair < pairs.end; ++pair) {
    attention_head<T>(in, pair, out, lse, buffers);
  }
}

/// weights [queries.tokens, heads, keys.longest] of the given pairs.
template <typename T>
void attention_weight_pairs(const AttentionArgs& in, PairRange pairs, const Tensor& weights,
                            const Tensor& memory) {
  using C = ComputeType<T>;
  const VectorTag<T> d;
  const AttentionBuffers<C> buffers(in.spec, in.keys.longest, false, memory.data<ComputeType<T>>());
  const std::int64_t longest = in.keys.longest;
  for (std::int64_t pair = pairs.begin; pair < pairs.end; ++pair) {
    const HeadView<T> head(in, pair);
    pack_rows(head.k, in.k.row_stride(), head.keys, in.spec.key_width, buffers.keys,
              buffers.key_pitch);
    for (std::int64_t first = 0; first < head.queries; first += 2 * lanes(d)) {
      const Tile tile = make_tile(d, first, head.queries, head.keys, in.spec.mask == Mask::causal);
      weigh_tile(d, in, head, tile, buffers);
      for (std::int64_t q = 0; q < tile.queries; ++q) {
        const std::int64_t row = head.query_row + first + q;
        C* to = weights.data<C>() + (row * in.spec.heads + head.head) * longest;
        for (std::int64_t k = 0; k < longest; ++k) {
          to[k] = k < tile.keys
                      ? buffers.scores[k * AttentionBuffers<C>::kTile + q] * buffers.factor[q]
                      : C{0};
        }
      }
    }
  }
}

auto attention_kernel() {
  return PerType{attention_pairs<float>, attention_pairs<double>, attention_pairs<bfloat16>};
}
auto weights_kernel() {
  return PerType{attention_weight_pairs<float>, attention_weight_pairs<double>,
                 attention_weight_pairs<bfloat16>};
}

}  // namespace
}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cstring>

#include "core/dispatch.h"
#include "model/ops/parts.h"

namespace octavo {
namespace {

HWY_EXPORT(attention_kernel);
HWY_EXPORT(weights_kernel);

// Cost of one head of sentence b, in weights: products grow with queries * keys, copies with their
// sum; the constants are rough.
std::int64_t head_cost(const AttentionArgs& in, std::int64_t b) {
  const auto* queries = in.queries.offsets.data<std::int32_t>() + b;
  const auto* keys = in.keys.offsets.data<std::int32_t>() + b;
  const std::int64_t m = queries[1] - queries[0], n = keys[1] - keys[0];
  return m * n + 8 * (m + n) + 64;
}

}  // namespace

std::int64_t attention_work(const AttentionArgs& in) {
  std::int64_t cost = 0;
  for (std::int64_t b = 0; b < in.queries.sentences; ++b) cost += head_cost(in, b);
  return cost * in.spec.heads * (in.spec.key_width + in.spec.value_width) / 16;
}

PairRange attention_part(const AttentionArgs& in, std::int64_t part, std::int64_t parts) {
  const std::int64_t sentences = in.queries.sentences, heads = in.spec.heads;
  std::int64_t total = 0;
  for (std::int64_t b = 0; b < sentences; ++b) total += head_cost(in, b) * heads;
  // The first pair at or beyond a given share of the cost.
  const auto pair_at = [&](std::int64_t share) {
    std::int64_t left = total * share / parts;
    for (std::int64_t b = 0; b < sentences; ++b) {
      const std::int64_t cost = head_cost(in, b);
      if (left < cost * heads) return b * heads + (left + cost - 1) / cost;
      left -= cost * heads;
    }
    return sentences * heads;
  };
  return {.begin = pair_at(part), .end = pair_at(part + 1)};
}

void zero_rows_from(const Tensor& t, std::int64_t first) {
  for (std::int64_t row = first; row < t.dim(0); ++row) {
    const Tensor r = t.rows(row, 1);
    std::memset(r.raw(), 0, static_cast<std::size_t>(r.bytes()));
  }
}

template <typename T>
void attention_forward(OnCpu, Context& ctx, const AttentionArgs& in, const Tensor& out,
                       const Tensor& lse, const Tensor& scratch) {
  const auto pairs = HWY_DYNAMIC_DISPATCH(attention_kernel)().template get<T>();
  const auto run = [&](std::int64_t part, std::int64_t parts, const Tensor& memory) {
    pairs(in, attention_part(in, part, parts), out, lse, memory);
  };
  for_parts(ctx, scratch, attention_work(in), run);
  zero_rows_from(out, in.queries.tokens);
  if (lse.present()) zero_rows_from(lse, in.queries.tokens);
}

template <typename T>
void attention_weights(OnCpu, Context& ctx, const AttentionArgs& in, const Tensor& weights,
                       const Tensor& scratch) {
  const auto pairs = HWY_DYNAMIC_DISPATCH(weights_kernel)().template get<T>();
  const auto run = [&](std::int64_t part, std::int64_t parts, const Tensor& memory) {
    pairs(in, attention_part(in, part, parts), weights, memory);
  };
  for_parts(ctx, scratch, attention_work(in), run);
}

template void attention_forward<float>(OnCpu, Context&, const AttentionArgs&, const Tensor&,
                                       const Tensor&, const Tensor&);
template void attention_forward<double>(OnCpu, Context&, const AttentionArgs&, const Tensor&,
                                        const Tensor&, const Tensor&);
template void attention_forward<bfloat16>(OnCpu, Context&, const AttentionArgs&, const Tensor&,
                                          const Tensor&, const Tensor&);
template void attention_weights<float>(OnCpu, Context&, const AttentionArgs&, const Tensor&,
                                       const Tensor&);
template void attention_weights<double>(OnCpu, Context&, const AttentionArgs&, const Tensor&,
                                        const Tensor&);
template void attention_weights<bfloat16>(OnCpu, Context&, const AttentionArgs&, const Tensor&,
                                          const Tensor&);

}  // namespace octavo
#endif  // HWY_ONCE
