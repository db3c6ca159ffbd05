#include "model/ops/optimizer.h"

#include <cmath>

#include "core/dispatch.h"
#include "model/ops/runs.h"

namespace octavo {

template <typename T>
void gradient_norm(OnCpu, Context& ctx, const Tensor& gradient, std::span<const ParameterRun> runs,
                   double clip, const Tensor& control, const Tensor& partials);
template <typename T>
void adam(OnCpu, Context& ctx, const AdamArgs& in);
template <typename T>
void exponential_average(OnCpu, Context& ctx, const Tensor& master, double decay,
                         const Tensor& average);

namespace {

void expect_flat(const Tensor& t, std::int64_t elements, DType type, const char* name) {
  expect_shape(t, {elements}, name);
  expect_dtype(t, type, name);
}

void expect_statistics_type(const Tensor& t, const char* name) {
  if (t.dtype() != DType::f64) expect_dtype(t, DType::f32, name);
}

// Rising and apart, inside the buffer. Returns how many elements they cover.
std::int64_t covered(std::span<const ParameterRun> runs, std::int64_t elements) {
  std::int64_t last = 0, sum = 0;
  for (const ParameterRun& run : runs) {
    expect(last <= run.begin && run.begin <= run.end && run.end <= elements,
           "optimizer: parameter runs overlap or leave the buffer");
    last = run.end;
    sum += run.end - run.begin;
  }
  return sum;
}

}  // namespace

void gradient_norm(Context& ctx, const Tensor& gradient, std::span<const ParameterRun> runs,
                   double clip, Tensor control) {
  const std::int64_t P = gradient.dim(0);
  expect_statistics_type(gradient, "gradient");
  expect_flat(gradient, P, gradient.dtype(), "gradient");
  expect_flat(control, 3, DType::f64, "control");
  expect(clip >= 0, "gradient_norm: clip is negative");
  const std::int64_t elements = covered(runs, P);
  const OpScope scope(ctx,
                      {.name = "gradient_norm",
                       .flops = 2 * elements,
                       .bytes = elements * static_cast<std::int64_t>(bytes_of(gradient.dtype()))});
  const ArenaScope scratch(ctx.scratch());
  const Tensor partials = ctx.scratch().allocate({flat_blocks(P)}, DType::f64);
  dispatch(ctx, gradient.dtype(), [&]<typename T>(auto on) {
    gradient_norm<T>(on, ctx, gradient, runs, clip, control, partials);
  });
}

void adam(Context& ctx, const AdamArgs& in) {
  const std::int64_t P = in.master.dim(0);
  const DType type = in.master.dtype();
  expect_statistics_type(in.master, "master");
  expect_flat(in.master, P, type, "master");
  expect_flat(in.gradient, P, type, "gradient");
  expect_flat(in.first, P, type, "first");
  expect_flat(in.second, P, type, "second");
  expect_flat(in.control, 3, DType::f64, "control");
  if (in.weights.present()) expect_flat(in.weights, P, DType::bf16, "weights");
  expect(in.count >= 1, "adam: updates are counted from 1");
  expect(0 <= in.beta1 && in.beta1 < 1 && 0 <= in.beta2 && in.beta2 < 1,
         "adam: a beta lies outside [0, 1)");
  const std::int64_t elements = covered(in.runs, P);
  const auto element = static_cast<std::int64_t>(bytes_of(type));
  const OpScope scope(ctx, {.name = "adam",
                            .flops = 13 * elements,
                            .bytes = elements * (7 * element + (in.weights.present() ? 2 : 0))});
  dispatch(ctx, type, [&]<typename T>(auto on) { adam<T>(on, ctx, in); });
}

void exponential_average(Context& ctx, const Tensor& master, double decay, Tensor average) {
  const std::int64_t P = master.dim(0);
  expect_statistics_type(master, "master");
  expect_flat(master, P, master.dtype(), "master");
  expect_flat(average, P, master.dtype(), "average");
  const OpScope scope(ctx,
                      {.name = "exponential_average", .flops = 3 * P, .bytes = 3 * master.bytes()});
  dispatch(ctx, master.dtype(),
           [&]<typename T>(auto on) { exponential_average<T>(on, ctx, master, decay, average); });
}

}  // namespace octavo
