#include "model/ops/top_k.h"

#include "core/dispatch.h"
#include "model/ops/top_k_candidates.h"

namespace octavo {

template <typename T>
void top_k(OnCpu, Context& ctx, const TopKArgs& in, const Tensor& log_probabilities,
           const Tensor& ids, const Tensor& scratch);

void top_k(Context& ctx, const TopKArgs& in, Tensor log_probabilities, Tensor ids) {
  const std::int64_t R = in.logits.dim(0), V = in.vocabulary;
  const DType statistics = statistics_type(in.logits.dtype());
  expect(in.logits.rank() == 2 && V >= 1 && V <= in.logits.dim(1),
         "top_k: logits must be [R, Vp] with Vp at least the vocabulary");
  expect(in.k >= 1 && in.k <= V - static_cast<std::int64_t>(in.banned.size()),
         "top_k: k must lie between 1 and the pieces that are not banned");
  expect_shape(log_probabilities, {R, in.k}, "log_probabilities");
  expect_dtype(log_probabilities, statistics, "log_probabilities");
  expect_shape(ids, {R, in.k}, "ids");
  expect_dtype(ids, DType::i32, "ids");
  // Of a logit: compared twice, subtracted, raised and added.
  const OpScope scope(ctx,
                      {.name = "top_k",
                       .flops = 5 * R * V,
                       .bytes = R * V * static_cast<std::int64_t>(bytes_of(in.logits.dtype())) +
                                log_probabilities.bytes() + ids.bytes()});
  const ArenaScope arena(ctx.scratch());
  const std::int64_t bytes = statistics == DType::f64 ? TopKBuffers<double>(in.k, V, nullptr).bytes
                                                      : TopKBuffers<float>(in.k, V, nullptr).bytes;
  const Tensor scratch = ctx.scratch().allocate({ctx.threads(), bytes}, DType::u8);
  dispatch(ctx, in.logits.dtype(),
           [&]<typename T>(auto on) { top_k<T>(on, ctx, in, log_probabilities, ids, scratch); });
}

}  // namespace octavo
