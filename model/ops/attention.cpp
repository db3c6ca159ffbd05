#include "model/ops/attention.h"

#include "core/dispatch.h"
#include "model/ops/attention_buffers.h"

namespace octavo {

template <typename T>
void attention_forward(OnCpu, Context& ctx, const AttentionArgs& in, const Tensor& out,
                       const Tensor& lse, const Tensor& scratch);
template <typename T>
void attention_backward(OnCpu, Context& ctx, const AttentionArgs& in, const Tensor& lse,
                        const Tensor& dout, const AttentionGradients& gradients,
                        const Tensor& scratch);
template <typename T>
void attention_weights(OnCpu, Context& ctx, const AttentionArgs& in, const Tensor& weights,
                       const Tensor& scratch);

namespace {

void check(const Context& ctx, const AttentionArgs& in) {
  const AttentionSpec& spec = in.spec;
  expect(spec.heads > 0 && spec.key_width > 0 && spec.value_width > 0,
         "attention: heads and widths must be positive");
  expect_shape(in.q, {in.queries.rows, spec.heads * spec.key_width}, "q");
  expect_shape(in.k, {in.keys.rows, spec.heads * spec.key_width}, "k");
  expect_shape(in.v, {in.keys.rows, spec.heads * spec.value_width}, "v");
  expect_dtype(in.k, in.q.dtype(), "k");
  expect_dtype(in.v, in.q.dtype(), "v");
  expect(in.queries.sentences == in.keys.sentences, "attention: another number of sentences");
  if (in.dropout.on()) expect_shape(in.dropout.ordinals, {in.queries.rows}, "dropout.ordinals");
  if (spec.mask != Mask::causal) return;
  expect(in.queries.tokens == in.keys.tokens, "attention: causal needs sentences of one length");
  if (ctx.device() != Device::cpu) return;
  const auto* queries = in.queries.offsets.data<std::int32_t>();
  const auto* keys = in.keys.offsets.data<std::int32_t>();
  expect(std::equal(queries, queries + in.queries.sentences + 1, keys),
         "attention: causal needs sentences of one length");
}

/// Weights of one head, over all sentences: those that are not masked.
std::int64_t count_weights(const Context& ctx, const AttentionArgs& in) {
  const PackedTokens &q = in.queries, &k = in.keys;
  if (in.spec.mask == Mask::causal) return (q.sum_squares + q.tokens) / 2;
  if (ctx.device() != Device::cpu) {  // offsets are out of reach; planned sentences are all alike
    return q.sentences == 0 ? 0 : q.tokens * k.tokens / q.sentences;
  }
  const auto *queries = q.offsets.data<std::int32_t>(), *keys = k.offsets.data<std::int32_t>();
  std::int64_t sum = 0;
  for (std::int64_t b = 0; b < q.sentences; ++b) {
    sum += std::int64_t{queries[b + 1] - queries[b]} * (keys[b + 1] - keys[b]);
  }
  return sum;
}

/// One row of scratch per thread.
Tensor allocate_scratch(Context& ctx, const AttentionArgs& in, bool backward) {
  const auto elements = [&]<typename C>(C) {
    return AttentionBuffers<C>(in.spec, in.keys.longest, backward, nullptr).elements;
  };
  const DType type = statistics_type(in.q.dtype());
  const std::int64_t size = type == DType::f64 ? elements(double{}) : elements(float{});
  return ctx.scratch().allocate({ctx.threads(), size}, type);
}

}  // namespace

void attention_forward(Context& ctx, const AttentionArgs& in, Tensor out, Tensor lse) {
  const AttentionSpec& spec = in.spec;
  check(ctx, in);
  expect_shape(out, {in.queries.rows, spec.heads * spec.value_width}, "out");
  expect_dtype(out, in.q.dtype(), "out");
  if (lse.present()) {
    expect_shape(lse, {in.queries.rows, spec.heads}, "lse");
    expect_dtype(lse, statistics_type(in.q.dtype()), "lse");
  }
  const OpScope scope(
      ctx, {.name = "attention_forward",
            .flops = 2 * count_weights(ctx, in) * spec.heads * (spec.key_width + spec.value_width),
            .bytes = in.q.bytes() + in.k.bytes() + in.v.bytes() + out.bytes() + lse.bytes()});
  const ArenaScope arena(ctx.scratch());
  const Tensor scratch = allocate_scratch(ctx, in, false);
  dispatch(ctx, in.q.dtype(),
           [&]<typename T>(auto on) { attention_forward<T>(on, ctx, in, out, lse, scratch); });
}

void attention_backward(Context& ctx, const AttentionArgs& in, const Tensor& out, const Tensor& lse,
                        const Tensor& dout, const AttentionGradients& gradients) {
  const AttentionSpec& spec = in.spec;
  const DType type = in.q.dtype();
  check(ctx, in);
  expect_shape(out, {in.queries.rows, spec.heads * spec.value_width}, "out");
  expect_shape(dout, {in.queries.rows, spec.heads * spec.value_width}, "dout");
  expect_shape(lse, {in.queries.rows, spec.heads}, "lse");
  expect_shape(gradients.dq, {in.queries.rows, spec.heads * spec.key_width}, "dq");
  expect_shape(gradients.dk, {in.keys.rows, spec.heads * spec.key_width}, "dk");
  expect_shape(gradients.dv, {in.keys.rows, spec.heads * spec.value_width}, "dv");
  expect_dtype(dout, type, "dout");
  expect_dtype(lse, statistics_type(type), "lse");
  expect_dtype(gradients.dq, type, "dq");
  expect_dtype(gradients.dk, type, "dk");
  expect_dtype(gradients.dv, type, "dv");
  const OpScope scope(ctx, {.name = "attention_backward",
                            .flops = 2 * count_weights(ctx, in) * spec.heads *
                                     (3 * spec.key_width + 2 * spec.value_width),
                            .bytes = 2 * (in.q.bytes() + in.k.bytes() + in.v.bytes()) +
                                     dout.bytes() + lse.bytes()});
  const ArenaScope arena(ctx.scratch());
  const Tensor scratch = allocate_scratch(ctx, in, true);
  dispatch(ctx, type, [&]<typename T>(auto on) {
    attention_backward<T>(on, ctx, in, lse, dout, gradients, scratch);
  });
}

void attention_weights(Context& ctx, const AttentionArgs& in, Tensor weights) {
  const AttentionSpec& spec = in.spec;
  check(ctx, in);
  expect_shape(weights, {in.queries.tokens, spec.heads, in.keys.longest}, "weights");
  expect_dtype(weights, statistics_type(in.q.dtype()), "weights");
  const OpScope scope(ctx, {.name = "attention_weights",
                            .flops = 2 * count_weights(ctx, in) * spec.heads * spec.key_width,
                            .bytes = in.q.bytes() + in.k.bytes() + weights.bytes()});
  const ArenaScope arena(ctx.scratch());
  const Tensor scratch = allocate_scratch(ctx, in, false);
  dispatch(ctx, in.q.dtype(),
           [&]<typename T>(auto on) { attention_weights<T>(on, ctx, in, weights, scratch); });
}

}  // namespace octavo
