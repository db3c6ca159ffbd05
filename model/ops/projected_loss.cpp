#include "model/ops/projected_loss.h"

#include <algorithm>

#include "core/dispatch.h"
#include "core/token_batch.h"
#include "model/ops/linear.h"
#include "model/ops/loss_rows.h"

namespace octavo {

template <typename T>
void loss_rows(OnCpu, Context& ctx, const LossRows& rows);

namespace {

// Every chunk reads and writes the whole gradient of the weight, and linear_forward copies the
// weight: the more rows the better, with little to gain from 1024 on. Many pieces make long rows;
// then memory is the limit.
constexpr std::int64_t kMostRows = 1024, kFewestRows = 256, kChunkBytes = 64 << 20;

std::int64_t chunk_rows(std::int64_t row_bytes) {
  const std::int64_t rows = kChunkBytes / row_bytes / kRowMultiple * kRowMultiple;
  return std::clamp(rows, kFewestRows, kMostRows);
}

void check(const Context& ctx, const ProjectedLossArgs& in, const ProjectedLossOut& out) {
  const std::int64_t N = in.x.dim(0), D = in.x.dim(1), Vp = in.weight.dim(0);
  const DType type = in.x.dtype(), statistics = statistics_type(type);
  expect_shape(in.weight, {Vp, D}, "weight");
  expect_dtype(in.weight, type, "weight");
  expect_shape(in.labels, {N}, "labels");
  expect_dtype(in.labels, DType::i32, "labels");
  expect(in.vocabulary >= 1 && in.vocabulary <= Vp,
         "projected_loss: vocabulary must lie between 1 and the rows of the weight");
  expect(in.label_smoothing >= 0 && in.label_smoothing < 1,
         "projected_loss: label_smoothing must lie in [0, 1)");
  expect_shape(out.sums, {2}, "sums");
  expect_dtype(out.sums, DType::f64, "sums");
  if (out.dx.present()) {
    expect_shape(out.dx, {N, D}, "dx");
    expect_dtype(out.dx, type, "dx");
  }
  if (out.dweight.present()) {
    expect(out.dx.present(), "projected_loss: dweight without dx");
    expect_shape(out.dweight, {Vp, D}, "dweight");
    expect_dtype(out.dweight, statistics, "dweight");
  }
  if (out.log_likelihood.present()) {
    expect_shape(out.log_likelihood, {N}, "log_likelihood");
    expect_dtype(out.log_likelihood, statistics, "log_likelihood");
  }
  if (ctx.device() != Device::cpu) return;
  const auto* labels = in.labels.data<std::int32_t>();
  expect(std::all_of(labels, labels + N,
                     [&](std::int32_t label) { return label >= -1 && label < in.vocabulary; }),
         "projected_loss: a label lies outside the vocabulary");
}

/// Logits [rows, Vp] in the statistics type of `type`. For bf16, rows start an odd number of cache
/// lines apart: the gradient of the weight reads columns, which would fall on few sets of the cache
/// if that were a power of two. For float32 the library is faster without gaps (both measured).
Tensor allocate_logits(Context& ctx, std::int64_t rows, std::int64_t Vp, DType type) {
  const DType statistics = statistics_type(type);
  if (type == statistics) return ctx.scratch().allocate({rows, Vp}, type);
  const std::int64_t line = Arena::kAlignment / static_cast<std::int64_t>(bytes_of(statistics));
  const std::int64_t lines = (Vp + line - 1) / line;
  return ctx.scratch().allocate({rows, (lines | 1) * line}, statistics).columns(0, Vp);
}

/// The memory of logits seen as elements of the compute type: a row still starts where it did.
Tensor gradient_view(const Tensor& logits, DType type) {
  if (type == logits.dtype()) return logits;
  const std::int64_t R = logits.dim(0), pitch = logits.row_stride();
  const auto ratio = static_cast<std::int64_t>(bytes_of(logits.dtype()) / bytes_of(type));
  return Tensor(logits.raw(), {R, ratio * pitch}, type).columns(0, logits.dim(1));
}

}  // namespace

void projected_loss(Context& ctx, const ProjectedLossArgs& in, const ProjectedLossOut& out) {
  check(ctx, in, out);
  const std::int64_t N = in.x.dim(0), Vp = in.weight.dim(0);
  const DType type = in.x.dtype(), statistics = statistics_type(type);
  const auto logit_bytes = static_cast<std::int64_t>(bytes_of(statistics));
  // Of the rows alone; products inside count themselves. A logit is compared, shifted, raised,
  // added twice, scaled and shifted again.
  const OpScope scope(ctx, {.name = "projected_loss",
                            .flops = (out.dx.present() ? 7 : 5) * N * Vp,
                            .bytes = (out.dx.present() ? 2 : 1) * N * Vp * logit_bytes});
  const ArenaScope arena(ctx.scratch());
  const std::int64_t chunk = std::min(N, chunk_rows(Vp * logit_bytes));
  const Tensor logits = allocate_logits(ctx, chunk, Vp, type);
  const Tensor losses = ctx.scratch().allocate({chunk, 2}, DType::f64);
  for (std::int64_t first = 0; first < N; first += chunk) {
    const std::int64_t R = std::min(chunk, N - first);
    const LinearArgs linear{.x = in.x.rows(first, R), .weight = in.weight};
    LossRows rows{.logits = logits.rows(0, R),
                  .labels = in.labels.rows(first, R),
                  .log_likelihood = out.log_likelihood,
                  .losses = losses.rows(0, R),
                  .sums = out.sums,
                  .vocabulary = in.vocabulary,
                  .label_smoothing = in.label_smoothing,
                  .gradient_scale = in.gradient_scale};
    if (out.log_likelihood.present()) rows.log_likelihood = out.log_likelihood.rows(first, R);
    if (out.dx.present()) rows.dlogits = gradient_view(rows.logits, type);
    linear_forward(ctx, linear, rows.logits);
    dispatch(ctx, type, [&]<typename T>(auto on) { loss_rows<T>(on, ctx, rows); });
    if (out.dx.present()) {
      linear_backward(ctx, linear, rows.dlogits,
                      {.dx = out.dx.rows(first, R), .dweight = out.dweight});
    }
  }
}

}  // namespace octavo
