#include "model/ops/cached_attention.h"

#include <algorithm>

#include "core/dispatch.h"

namespace octavo {

template <typename T>
void cached_attention_forward(OnCpu, Context& ctx, const CachedAttentionArgs& in, const Tensor& out,
                              const Tensor& scratch);

namespace {

void check(const Context& ctx, const CachedAttentionArgs& in, const Tensor& out) {
  const AttentionSpec& spec = in.spec;
  expect(spec.heads > 0 && spec.key_width > 0 && spec.value_width > 0,
         "cached attention: heads and widths must be positive");
  const std::int64_t R = in.q.dim(0);
  expect_shape(in.q, {R, spec.heads * spec.key_width}, "q");
  expect_shape(in.cache, {in.cache.dim(0), spec.heads * (spec.key_width + spec.value_width)},
               "cache");
  expect_shape(in.slots, {R, in.slots.dim(1)}, "slots");
  expect_shape(out, {R, spec.heads * spec.value_width}, "out");
  expect_dtype(in.cache, in.q.dtype(), "cache");
  expect_dtype(in.slots, DType::i32, "slots");
  expect_dtype(out, in.q.dtype(), "out");
  expect(in.steps >= 1 && in.steps <= in.slots.dim(1),
         "cached attention: steps must lie between 1 and the columns of slots");
  if (in.lengths.present()) {
    expect_shape(in.lengths, {R}, "lengths");
    expect_dtype(in.lengths, DType::i32, "lengths");
  }
  if (ctx.device() != Device::cpu) return;
  for (std::int64_t r = 0; r < R; ++r) {
    const auto* slots = in.slots.data<std::int32_t>() + r * in.slots.row_stride();
    const std::int64_t n = in.lengths.present() ? in.lengths.data<std::int32_t>()[r] : in.steps;
    expect(n >= 1 && n <= in.steps,
           "cached attention: a row sees no token, or more than there are");
    expect(std::all_of(slots, slots + n,
                       [&](std::int32_t s) { return s >= 0 && s < in.cache.dim(0); }),
           "cached attention: a slot lies outside the cache");
  }
}

}  // namespace

void cached_attention_forward(Context& ctx, const CachedAttentionArgs& in, Tensor out) {
  const AttentionSpec& spec = in.spec;
  check(ctx, in, out);
  // With lengths this is the most that it may be.
  const std::int64_t R = in.q.dim(0), widths = spec.heads * (spec.key_width + spec.value_width);
  const OpScope scope(
      ctx, {.name = "cached_attention",
            .flops = 2 * R * in.steps * widths,
            .bytes = in.q.bytes() + out.bytes() +
                     R * in.steps * widths * static_cast<std::int64_t>(bytes_of(in.q.dtype()))});
  const ArenaScope arena(ctx.scratch());
  // A thread's weights of one row and head. Sized for the last step: later ones need no more.
  const Tensor scratch = ctx.scratch().allocate({ctx.threads(), round_up(in.slots.dim(1), 16)},
                                                statistics_type(in.q.dtype()));
  dispatch(ctx, in.q.dtype(),
           [&]<typename T>(auto on) { cached_attention_forward<T>(on, ctx, in, out, scratch); });
}

}  // namespace octavo
