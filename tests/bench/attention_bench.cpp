// Attention, the loss and the ops of decoding on the CPU. "peak" is the share of the processor's
// float32 peak (bf16 products of the loss may exceed it), "copy" that of its copy bandwidth.
//
//     OMP_PROC_BIND=close OMP_PLACES=cores build/cpu-release/tests/bench_attention
#include <cmath>

#include "model/ops/attention.h"
#include "model/ops/cached_attention.h"
#include "model/ops/projected_loss.h"
#include "model/ops/top_k.h"
#include "tests/bench/bench.h"

namespace octavo::bench {
namespace {

using testkit::TestTensor;

constexpr std::int64_t kScratch = std::int64_t{512} << 20;

DType type_of(std::int64_t bf16) {
  return bf16 == 0 ? DType::f32 : DType::bf16;
}

void report_flops_of_peak(benchmark::State& state, std::int64_t flops) {
  report_flops(state, flops);
  state.counters["peak"] = benchmark::Counter(
      static_cast<double>(flops) * static_cast<double>(state.iterations()) / multiply_add_peak(),
      benchmark::Counter::kIsRate);
}

/// Self-attention on sentences of one length, q, k and v being columns of one product.
struct AttentionBench {
  explicit AttentionBench(const benchmark::State& state)
      : width(state.range(2)),
        mask(state.range(3) == 0 ? Mask::none : Mask::causal),
        dropout(static_cast<double>(state.range(4)) / 100) {
    for (std::int64_t b = 0; b < state.range(0); ++b) {
      builder.add(std::vector<std::int32_t>(static_cast<std::size_t>(state.range(1)), 3),
                  b * state.range(1));
    }
    tokens = builder.finish();
    const DType type = type_of(state.range(5));
    RandomStream stream(1);
    const std::int64_t columns = heads * width;
    qkv = TestTensor::random({tokens.rows, 3 * columns}, type, stream);
    dout = TestTensor::random({tokens.rows, columns}, type, stream);
    out = TestTensor::zeros({tokens.rows, columns}, type);
    dqkv = TestTensor::zeros({tokens.rows, 3 * columns}, type);
    lse = TestTensor::zeros({tokens.rows, heads}, DType::f32);
  }
  AttentionArgs args() const {
    const std::int64_t columns = heads * width;
    return {.spec = {.heads = heads,
                     .key_width = width,
                     .value_width = width,
                     .mask = mask,
                     .scale = 1 / std::sqrt(static_cast<double>(width))},
            .q = qkv.view().columns(0, columns),
            .k = qkv.view().columns(columns, columns),
            .v = qkv.view().columns(2 * columns, columns),
            .queries = tokens,
            .keys = tokens,
            .dropout = {.probability = dropout, .key = 7, .ordinals = tokens.ordinals}};
  }
  AttentionGradients gradients() const {
    const std::int64_t columns = heads * width;
    return {.dq = dqkv.view().columns(0, columns),
            .dk = dqkv.view().columns(columns, columns),
            .dv = dqkv.view().columns(2 * columns, columns)};
  }
  std::int64_t flops() const {  // of forward
    const std::int64_t pairs =
        mask == Mask::none ? tokens.sum_squares : (tokens.sum_squares + tokens.tokens) / 2;
    return 4 * pairs * heads * width;
  }

  std::int64_t heads = 4, width;
  Mask mask;
  double dropout;
  PackedTokensBuilder builder;
  PackedTokens tokens;
  TestTensor qkv, out, lse, dout, dqkv;
};

void attention_forward_bench(benchmark::State& state) {
  const AttentionBench b(state);
  Context ctx(Device::cpu, threads(), kScratch);
  for (auto _ : state) attention_forward(ctx, b.args(), b.out, b.lse);
  report_flops_of_peak(state, b.flops());
}
void attention_backward_bench(benchmark::State& state) {
  const AttentionBench b(state);
  Context ctx(Device::cpu, threads(), kScratch);
  attention_forward(ctx, b.args(), b.out, b.lse);
  for (auto _ : state) attention_backward(ctx, b.args(), b.out, b.lse, b.dout, b.gradients());
  report_flops_of_peak(state, b.flops() / 2 * 5);
}

void attention_shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"sentences", "length", "width", "causal", "dropout%", "bf16"})->UseRealTime();
  for (const std::int64_t bf16 : {0, 1}) {
    for (const std::int64_t causal : {0, 1}) {
      b->Args({64, 32, 64, causal, 0, bf16});
      b->Args({64, 32, 64, causal, 10, bf16});
      b->Args({256, 8, 64, causal, 10, bf16});
      b->Args({8, 256, 64, causal, 10, bf16});
    }
  }
}
BENCHMARK(attention_forward_bench)->Apply(attention_shapes);
BENCHMARK(attention_backward_bench)->Apply(attention_shapes);

void cached_attention_bench(benchmark::State& state) {
  const std::int64_t R = state.range(0), S = state.range(1), heads = 4, width = 64;
  const DType type = type_of(state.range(2));
  RandomStream stream(1);
  const TestTensor q = TestTensor::random({R, heads * width}, type, stream);
  const TestTensor cache = TestTensor::random({R * S, 2 * heads * width}, type, stream);
  TestTensor slots({R, S}, DType::i32), out({R, heads * width}, type);
  for (std::int64_t i = 0; i < R * S; ++i) {
    slots.set(i, static_cast<double>(stream.below(static_cast<std::uint64_t>(R * S))));
  }
  const CachedAttentionArgs in{
      .spec = {.heads = heads, .key_width = width, .value_width = width, .scale = 0.125},
      .q = q,
      .cache = cache,
      .slots = slots,
      .steps = S};
  Context ctx(Device::cpu, threads(), kScratch);
  for (auto _ : state) cached_attention_forward(ctx, in, out);
  report_bytes(state, R * S * 2 * heads * width * static_cast<std::int64_t>(bytes_of(type)));
}
BENCHMARK(cached_attention_bench)
    ->UseRealTime()
    ->ArgNames({"rows", "steps", "bf16"})
    ->ArgsProduct({{256}, {8, 32, 100}, {0, 1}});

// gradient 0: validation. Products included: they are nearly all of it.
void projected_loss_bench(benchmark::State& state) {
  const std::int64_t N = state.range(0), V = state.range(1), D = state.range(2);
  const bool gradient = state.range(3) != 0;
  const DType type = type_of(state.range(4));
  RandomStream stream(1);
  const TestTensor x = TestTensor::random({N, D}, type, stream, 0.1);
  const TestTensor weight = TestTensor::random({V, D}, type, stream, 0.1);
  const TestTensor dx({N, D}, type), dweight = TestTensor::zeros({V, D}, DType::f32);
  TestTensor labels({N}, DType::i32), sums = TestTensor::zeros({2}, DType::f64);
  for (std::int64_t n = 0; n < N; ++n) labels.set(n, static_cast<double>(n % V));
  ProjectedLossOut out{.sums = sums};
  if (gradient) out = {.sums = sums, .dx = dx, .dweight = dweight};
  Context ctx(Device::cpu, threads(), kScratch);
  for (auto _ : state) {
    projected_loss(ctx,
                   {.x = x,
                    .weight = weight,
                    .labels = labels,
                    .vocabulary = V,
                    .label_smoothing = 0.1,
                    .gradient_scale = 1e-3},
                   out);
  }
  report_flops_of_peak(state, (gradient ? 6 : 2) * N * V * D);
}
BENCHMARK(projected_loss_bench)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond)
    ->ArgNames({"N", "V", "D", "gradient", "bf16"})
    ->ArgsProduct({{2048}, {8000, 32000}, {256}, {0, 1}, {0, 1}});

void top_k_bench(benchmark::State& state) {
  const std::int64_t R = state.range(0), V = state.range(1), k = state.range(2);
  const DType type = type_of(state.range(3));
  RandomStream stream(1);
  const TestTensor logits = TestTensor::random({R, V}, type, stream);
  const TestTensor values({R, k}, DType::f32), ids({R, k}, DType::i32);
  Context ctx(Device::cpu, threads(), kScratch);
  for (auto _ : state) top_k(ctx, {.logits = logits, .vocabulary = V, .k = k}, values, ids);
  report_bytes(state, logits.view().bytes());
}
BENCHMARK(top_k_bench)
    ->UseRealTime()
    ->ArgNames({"rows", "V", "k", "bf16"})
    ->ArgsProduct({{256}, {8000, 32000}, {1, 8, 20}, {0, 1}});

}  // namespace
}  // namespace octavo::bench

BENCHMARK_MAIN();
