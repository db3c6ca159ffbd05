#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/ops/attention_backward_cpu.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "model/ops/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {
namespace {

/// buffers.scores become the weights again: exp(score - lse).
template <class D, typename C>
HWY_INLINE void restore_weights(D d, const Tile& tile, const AttentionBuffers<C>& buffers) {
  constexpr std::int64_t kPitch = AttentionBuffers<C>::kTile;
  for (std::int64_t lane = 0; lane < tile.queries; lane += lanes(d)) {
    C* HWY_RESTRICT scores = buffers.scores + lane;
    const auto lse = hn::LoadU(d, buffers.lse + lane);
    for_keys(d, tile, lane, [&](std::int64_t k, auto mask) HWY_ATTR {
      const auto p = exp(d, hn::Sub(hn::LoadU(d, scores + k * kPitch), lse));
      hn::StoreU(where_seen(d, mask, p, hn::Zero(d)), d, scores + k * kPitch);
    });
  }
  zero_unseen(d, tile, buffers.scores);
}

/// buffers.dropped = the weights under the mask; buffers.dscores pass the same mask backwards.
template <class D, typename C>
HWY_INLINE void drop_tile(D d, const Tile& tile, const Dropout& dropout, std::int64_t head,
                          const std::int64_t* ordinals, const AttentionBuffers<C>& buffers) {
  constexpr std::int64_t kPitch = AttentionBuffers<C>::kTile;
  const TileDropout<D> numbers(d, dropout, head, ordinals, tile.queries);
  const auto scale = broadcast(d, dropout.scale());
  for (std::int64_t lane = 0; lane < tile.queries; lane += lanes(d)) {
    const C* HWY_RESTRICT weights = buffers.scores + lane;
    C* HWY_RESTRICT dropped = buffers.dropped + lane;
    C* HWY_RESTRICT gradients = buffers.dscores + lane;
    numbers.for_keys(d, lane, tile.seen(lane, lanes(d)), [&](std::int64_t k, auto kept) HWY_ATTR {
      const auto factor = hn::IfThenElseZero(kept, scale);
      const std::int64_t i = k * kPitch;
      hn::StoreU(hn::Mul(factor, hn::LoadU(d, weights + i)), d, dropped + i);
      hn::StoreU(hn::Mul(factor, hn::LoadU(d, gradients + i)), d, gradients + i);
    });
  }
  zero_unseen(d, tile, buffers.dropped);
}

/// buffers.dscores, gradients of the weights p, become those of the unscaled scores:
/// scale * p * (dp - sum over keys of p * dp).
template <class D, typename C>
HWY_INLINE void softmax_gradient(D d, const Tile& tile, double scale,
                                 const AttentionBuffers<C>& buffers) {
  constexpr std::int64_t kPitch = AttentionBuffers<C>::kTile;
  const auto scale_vector = broadcast(d, scale);
  for (std::int64_t lane = 0; lane < tile.queries; lane += lanes(d)) {
    const C* HWY_RESTRICT weights = buffers.scores + lane;
    C* HWY_RESTRICT gradients = buffers.dscores + lane;
    const std::int64_t seen = tile.seen(lane, lanes(d));
    auto sum = hn::Zero(d);  // where a lane sees no key its weight is zero
    for (std::int64_t i = 0; i < seen * kPitch; i += kPitch) {
      sum = hn::MulAdd(hn::LoadU(d, weights + i), hn::LoadU(d, gradients + i), sum);
    }
    for (std::int64_t i = 0; i < seen * kPitch; i += kPitch) {
      const auto p = hn::Mul(scale_vector, hn::LoadU(d, weights + i));
      hn::StoreU(hn::Mul(p, hn::Sub(hn::LoadU(d, gradients + i), sum)), d, gradients + i);
    }
  }
  zero_unseen(d, tile, buffers.dscores);
}

/// to[key, c] += sum over queries of weights[key, query] * rows[query, c].
template <class D, typename C>
HWY_INLINE void multiply_queries(D d, const Tile& tile, const C* weights, const C* rows,
                                 std::int64_t pitch, std::int64_t width, C* to) {
  multiply_tile<false>(TileProduct<C>{.a = weights,
                                      .a_pitch = AttentionBuffers<C>::kTile,
                                      .b = rows,
                                      .b_pitch = pitch,
                                      .c = to,
                                      .c_pitch = pitch,
                                      .rows = tile.keys,
                                      .vectors = (width + lanes(d) - 1) / lanes(d),
                                      .depth = tile.queries,
                                      .add = true,
                                      .skip = tile.causal ? Skip::depth_before : Skip::nothing,
                                      .diagonal = tile.first});
}

/// One tile's scores and weights, and the gradients of the scores.
template <class D, typename T, typename C>
HWY_INLINE void differentiate_tile(D d, const AttentionArgs& in, const HeadView<T>& head,
                                   const Tile& tile, const Tensor& lse, const Tensor& dout,
                                   const AttentionBuffers<C>& buffers) {
  const AttentionSpec& spec = in.spec;
  const std::int64_t row = head.query_row + tile.first;
  pack_queries(d, tile, head.q + tile.first * in.q.row_stride(), in.q.row_stride(), spec.key_width,
               buffers.key_pitch, spec.scale, buffers.queries, buffers.queries_across);
  pack_queries(d, tile, HeadView<T>::element(dout, row, head.head * spec.value_width),
               dout.row_stride(), spec.value_width, buffers.value_pitch, 1, buffers.dout,
               buffers.dout_across);
  for (std::int64_t q = 0; q < tile.vectors * lanes(d); ++q) {
    buffers.lse[q] = q < tile.queries ? lse.data<C>()[(row + q) * spec.heads + head.head] : C{0};
  }
  multiply_keys(tile, buffers.keys, buffers.key_pitch, spec.key_width, buffers.queries_across,
                buffers.scores);
  multiply_keys(tile, buffers.values, buffers.value_pitch, spec.value_width, buffers.dout_across,
                buffers.dscores);
  restore_weights(d, tile, buffers);
  if (in.dropout.on()) {
    drop_tile(d, tile, in.dropout, head.head, in.dropout.ordinals.data<std::int64_t>() + row,
              buffers);
  }
  softmax_gradient(d, tile, spec.scale, buffers);
}

template <typename T>
void attention_head_backward(const AttentionArgs& in, std::int64_t pair, const Tensor& lse,
                             const Tensor& dout, const AttentionGradients& gradients,
                             const AttentionBuffers<ComputeType<T>>& buffers) {
  const VectorTag<T> d;
  const AttentionSpec& spec = in.spec;
  const HeadView<T> head(in, pair);
  pack_rows(head.k, in.k.row_stride(), head.keys, spec.key_width, buffers.keys, buffers.key_pitch);
  pack_rows(head.v, in.v.row_stride(), head.keys, spec.value_width, buffers.values,
            buffers.value_pitch);
  zero_vectors(buffers.dkeys, head.keys * buffers.key_pitch);
  zero_vectors(buffers.dvalues, head.keys * buffers.value_pitch);
  const auto* weights = in.dropout.on() ? buffers.dropped : buffers.scores;
  for (std::int64_t first = 0; first < head.queries; first += 2 * lanes(d)) {
    const Tile tile = make_tile(d, first, head.queries, head.keys, spec.mask == Mask::causal);
    differentiate_tile(d, in, head, tile, lse, dout, buffers);
    multiply_queries(d, tile, weights, buffers.dout, buffers.value_pitch, spec.value_width,
                     buffers.dvalues);
    multiply_queries(d, tile, buffers.dscores, buffers.queries, buffers.key_pitch, spec.key_width,
                     buffers.dkeys);
    multiply_weights(d, tile, buffers.dscores, buffers.keys, buffers.key_pitch, spec.key_width,
                     buffers.out);
    unpack_rows(
        buffers.out, buffers.key_pitch, tile.queries, spec.key_width,
        HeadView<T>::element(gradients.dq, head.query_row + first, head.head * spec.key_width),
        gradients.dq.row_stride());
  }
  unpack_rows(buffers.dkeys, buffers.key_pitch, head.keys, spec.key_width,
              HeadView<T>::element(gradients.dk, head.key_row, head.head * spec.key_width),
              gradients.dk.row_stride());
  unpack_rows(buffers.dvalues, buffers.value_pitch, head.keys, spec.value_width,
              HeadView<T>::element(gradients.dv, head.key_row, head.head * spec.value_width),
              gradients.dv.row_stride());
}

template <typename T>
void attention_backward_pairs(const AttentionArgs& in, PairRange pairs, const Tensor& lse,
                              const Tensor& dout, const AttentionGradients& gradients,
                              const Tensor& memory) {
  const AttentionBuffers<ComputeType<T>> buffers(in.spec, in.keys.longest, true,
                                                 memory.data<ComputeType<T>>());
  for (std::int64_t pair = pairs.begin; pair < pairs.end; ++pair) {
    attention_head_backward<T>(in, pair, lse, dout, gradients, buffers);
  }
}

auto backward_kernel() {
  return PerType{attention_backward_pairs<float>, attention_backward_pairs<double>,
                 attention_backward_pairs<bfloat16>};
}

}  // namespace
}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/dispatch.h"
#include "model/ops/parts.h"

namespace octavo {
namespace {

HWY_EXPORT(backward_kernel);

}  // namespace

template <typename T>
void attention_backward(OnCpu, Context& ctx, const AttentionArgs& in, const Tensor& lse,
                        const Tensor& dout, const AttentionGradients& gradients,
                        const Tensor& scratch) {
  const auto pairs = HWY_DYNAMIC_DISPATCH(backward_kernel)().template get<T>();
  const auto run = [&](std::int64_t part, std::int64_t parts, const Tensor& memory) {
    pairs(in, attention_part(in, part, parts), lse, dout, gradients, memory);
  };
  for_parts(ctx, scratch, attention_work(in), run);
  zero_rows_from(gradients.dq, in.queries.tokens);
  zero_rows_from(gradients.dk, in.keys.tokens);
  zero_rows_from(gradients.dv, in.keys.tokens);
}

template void attention_backward<float>(OnCpu, Context&, const AttentionArgs&, const Tensor&,
                                        const Tensor&, const AttentionGradients&, const Tensor&);
template void attention_backward<double>(OnCpu, Context&, const AttentionArgs&, const Tensor&,
                                         const Tensor&, const AttentionGradients&, const Tensor&);
template void attention_backward<bfloat16>(OnCpu, Context&, const AttentionArgs&, const Tensor&,
                                           const Tensor&, const AttentionGradients&, const Tensor&);

}  // namespace octavo
#endif  // HWY_ONCE
