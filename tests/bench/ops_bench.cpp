// Ops on the CPU. Products are judged by FLOP/s against the processor's peak; everything else
// moves memory and is judged by bytes per second against a copy.
//
//     OMP_PROC_BIND=close OMP_PLACES=cores build/cpu-release/tests/bench_ops
#include <cmath>

#include "model/ops/activation.h"
#include "model/ops/column_sums.h"
#include "model/ops/elementwise.h"
#include "model/ops/embedding.h"
#include "model/ops/linear.h"
#include "model/ops/optimizer.h"
#include "model/ops/residual_norm.h"
#include "tests/bench/bench.h"

namespace octavo::bench {
namespace {

using testkit::TestTensor;

constexpr std::int64_t kScratch = std::int64_t{512} << 20;

DType type_of(const benchmark::State& state, int i) {
  return state.range(i) == 0 ? DType::f32 : DType::bf16;
}
std::int64_t size_of(DType type) {
  return static_cast<std::int64_t>(bytes_of(type));
}

TestTensor drawn(std::initializer_list<std::int64_t> shape, DType type) {
  RandomStream stream(1);
  return TestTensor::random(shape, type, stream);
}

// --- products: N tokens, O outputs, I inputs -----------------------------------------------------

enum class Pass { forward, dx, dweight };

template <Pass pass>
void linear_bench(benchmark::State& state) {
  const std::int64_t N = state.range(0), O = state.range(1), I = state.range(2);
  const DType type = type_of(state, 3);
  Context ctx(Device::cpu, threads(), kScratch);
  const TestTensor x = drawn({N, I}, type), weight = drawn({O, I}, type), y = drawn({N, O}, type);
  const TestTensor dweight = drawn({O, I}, DType::f32);
  const LinearArgs in{.x = x, .weight = weight};
  for (auto _ : state) {
    if constexpr (pass == Pass::forward) linear_forward(ctx, in, y);
    if constexpr (pass == Pass::dx) linear_backward(ctx, in, y, {.dx = x});
    if constexpr (pass == Pass::dweight) linear_backward(ctx, in, y, {.dweight = dweight});
  }
  report_flops(state, 2 * N * O * I);
}

void linear_shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"N", "O", "I", "bf16"})->UseRealTime();
  for (const std::int64_t bf16 : {0, 1}) {
    for (const std::int64_t N : {64, 1536, 4096}) {
      for (const auto& [O, I] : {std::pair<std::int64_t, std::int64_t>{256, 256},
                                 {768, 256},
                                 {1024, 256},
                                 {256, 1024},
                                 {8000, 256},
                                 {512, 512},
                                 {2048, 512},
                                 {32000, 512}}) {
        if (N * O <= 4096 * 8000) b->Args({N, O, I, bf16});
      }
    }
  }
}
BENCHMARK(linear_bench<Pass::forward>)->Name("linear_forward")->Apply(linear_shapes);
BENCHMARK(linear_bench<Pass::dx>)->Name("linear_dx")->Apply(linear_shapes);
BENCHMARK(linear_bench<Pass::dweight>)->Name("linear_dweight")->Apply(linear_shapes);

// --- rows: N tokens, D columns -------------------------------------------------------------------

void row_shapes(benchmark::internal::Benchmark* b) {
  b->UseManualTime()
      ->ArgNames({"N", "D", "bf16", "dropout"})
      ->ArgsProduct({{4096}, {256, 1024}, {0, 1}, {0, 1}});
}

Dropout dropout_of(const benchmark::State& state, const TestTensor& ordinals) {
  if (state.range(3) == 0) return {};
  return {.probability = 0.1, .key = 1, .ordinals = ordinals};
}

void residual_norm_forward_bench(benchmark::State& state) {
  const std::int64_t N = state.range(0), D = state.range(1);
  const DType type = type_of(state, 2);
  Context ctx(Device::cpu, threads(), kScratch);
  const TestTensor residual = drawn({N, D}, type), branch(residual), y(residual), sum(residual);
  const TestTensor gamma = drawn({D}, DType::f32), mean = drawn({N}, DType::f32), rstd(mean);
  const TestTensor ordinals = drawn({N}, DType::i64);
  time_cold(state, [&] {
    residual_norm_forward(ctx,
                          {.residual = residual,
                           .branch = branch,
                           .gamma = gamma,
                           .beta = gamma,
                           .dropout = dropout_of(state, ordinals)},
                          y, {.sum = sum, .mean = mean, .rstd = rstd});
  });
  report_bytes(state, 4 * N * D * size_of(type));
}
BENCHMARK(residual_norm_forward_bench)->Name("residual_norm_forward")->Apply(row_shapes);

void residual_norm_backward_bench(benchmark::State& state) {
  const std::int64_t N = state.range(0), D = state.range(1);
  const DType type = type_of(state, 2);
  Context ctx(Device::cpu, threads(), kScratch);
  const TestTensor sum = drawn({N, D}, type), dy(sum), dresidual(sum), dbranch(sum);
  const TestTensor gamma = drawn({D}, DType::f32), dgamma(gamma), dbeta(gamma);
  const TestTensor mean = drawn({N}, DType::f32), rstd(mean), ordinals = drawn({N}, DType::i64);
  time_cold(state, [&] {
    residual_norm_backward(
        ctx,
        {.residual = {}, .gamma = gamma, .beta = gamma, .dropout = dropout_of(state, ordinals)},
        {.sum = sum, .mean = mean, .rstd = rstd}, dy,
        {.dresidual = dresidual, .dbranch = dbranch, .dgamma = dgamma, .dbeta = dbeta});
  });
  report_bytes(state, 4 * N * D * size_of(type));
}
BENCHMARK(residual_norm_backward_bench)->Name("residual_norm_backward")->Apply(row_shapes);

template <Activation kind>
void activation_forward_bench(benchmark::State& state) {
  const std::int64_t N = state.range(0), D = state.range(1);
  const DType type = type_of(state, 2);
  Context ctx(Device::cpu, threads(), 0);
  const TestTensor x = drawn({N, D}, type), y(x), ordinals = drawn({N}, DType::i64);
  time_cold(state, [&] {
    activation_forward(ctx, {.x = x, .kind = kind, .dropout = dropout_of(state, ordinals)}, y);
  });
  report_bytes(state, 2 * N * D * size_of(type));
}
BENCHMARK(activation_forward_bench<Activation::relu>)->Name("relu_forward")->Apply(row_shapes);
BENCHMARK(activation_forward_bench<Activation::gelu>)->Name("gelu_forward")->Apply(row_shapes);

template <Activation kind>
void activation_backward_bench(benchmark::State& state) {
  const std::int64_t N = state.range(0), D = state.range(1);
  const DType type = type_of(state, 2);
  Context ctx(Device::cpu, threads(), 0);
  const TestTensor x = drawn({N, D}, type), dy(x), dx(x), ordinals = drawn({N}, DType::i64);
  time_cold(state, [&] {
    activation_backward(ctx, {.x = x, .kind = kind, .dropout = dropout_of(state, ordinals)}, x, dy,
                        dx);
  });
  report_bytes(state, 3 * N * D * size_of(type));
}
BENCHMARK(activation_backward_bench<Activation::relu>)->Name("relu_backward")->Apply(row_shapes);
BENCHMARK(activation_backward_bench<Activation::gelu>)->Name("gelu_backward")->Apply(row_shapes);

void column_sums_bench(benchmark::State& state) {
  const std::int64_t N = state.range(0), D = state.range(1);
  const DType type = type_of(state, 2);
  Context ctx(Device::cpu, threads(), kScratch);
  const TestTensor x = drawn({N, D}, type), sums = drawn({D}, DType::f32);
  time_cold(state, [&] { add_column_sums(ctx, x, sums); });
  report_bytes(state, N * D * size_of(type));
}
BENCHMARK(column_sums_bench)
    ->Name("column_sums")
    ->UseManualTime()
    ->ArgNames({"N", "D", "bf16"})
    ->ArgsProduct({{4096}, {256, 1024}, {0, 1}});

// --- embeddings: 100 sentences of 40 tokens, V pieces --------------------------------------------

struct Tokens {
  PackedTokensBuilder builder;
  PackedTokens packed;
  explicit Tokens(std::int64_t V) {
    RandomStream random(1);
    for (int s = 0; s < 100; ++s) {
      std::vector<std::int32_t> ids(40);
      for (std::int32_t& id : ids) {
        id = static_cast<std::int32_t>(static_cast<double>(V) * std::pow(random.uniform(), 3));
      }
      builder.add(ids, s * 40);
    }
    packed = builder.finish();
  }
};

template <bool backward>
void embedding_bench(benchmark::State& state) {
  const std::int64_t V = state.range(0), D = state.range(1);
  const DType type = type_of(state, 2);
  Context ctx(Device::cpu, threads(), kScratch);
  const Tokens tokens(V);
  const std::int64_t rows = tokens.packed.rows;
  const TestTensor table = drawn({V, D}, type), y = drawn({rows, D}, type);
  const TestTensor dtable = drawn({V, D}, DType::f32), ordinals = drawn({rows}, DType::i64);
  const EmbeddingArgs in{
      .tokens = tokens.packed, .table = table, .scale = 16, .dropout = dropout_of(state, ordinals)};
  time_cold(state, [&] {
    if constexpr (backward) {
      embedding_backward(ctx, in, y, dtable, {});
    } else {
      embedding_forward(ctx, in, y);
    }
  });
  report_bytes(state, rows * D * (backward ? size_of(type) + 8 : 2 * size_of(type)));
}
void embedding_shapes(benchmark::internal::Benchmark* b) {
  b->UseManualTime()
      ->ArgNames({"V", "D", "bf16", "dropout"})
      ->ArgsProduct({{8000, 32000}, {512}, {0, 1}, {0, 1}});
}
BENCHMARK(embedding_bench<false>)->Name("embedding_forward")->Apply(embedding_shapes);
BENCHMARK(embedding_bench<true>)->Name("embedding_backward")->Apply(embedding_shapes);

// --- flat buffers: P parameters ------------------------------------------------------------------

void gradient_norm_bench(benchmark::State& state) {
  const std::int64_t P = state.range(0);
  Context ctx(Device::cpu, threads(), kScratch);
  const TestTensor g = drawn({P}, DType::f32), control = drawn({3}, DType::f64);
  const std::vector<ParameterRun> runs = {{.begin = 0, .end = P}};
  time_cold(state, [&] { gradient_norm(ctx, g, runs, 1, control); });
  report_bytes(state, 4 * P);
}
BENCHMARK(gradient_norm_bench)->Name("gradient_norm")->UseManualTime()->ArgName("P")->Arg(10 << 20);

void adam_bench(benchmark::State& state) {
  const std::int64_t P = state.range(0);
  Context ctx(Device::cpu, threads(), kScratch);
  const TestTensor w = drawn({P}, DType::f32), g(w), m(w), v(w), half = drawn({P}, DType::bf16);
  const TestTensor control({3}, DType::f64, {1, 1, 1});
  const std::vector<ParameterRun> runs = {{.begin = 0, .end = P}};
  const bool bf16 = state.range(1) != 0;
  time_cold(state, [&] {
    adam(ctx, {.master = w,
               .gradient = g,
               .first = m,
               .second = v,
               .weights = bf16 ? half.view() : Tensor(),
               .runs = runs,
               .control = control,
               .rate = 1e-3,
               .count = 1});
  });
  report_bytes(state, P * (7 * 4 + (bf16 ? 2 : 0)));
}
BENCHMARK(adam_bench)
    ->Name("adam")
    ->UseManualTime()
    ->ArgNames({"P", "bf16"})
    ->ArgsProduct({{10 << 20}, {0, 1}});

void average_bench(benchmark::State& state) {
  const std::int64_t P = state.range(0);
  Context ctx(Device::cpu, threads(), 0);
  const TestTensor w = drawn({P}, DType::f32), a(w);
  time_cold(state, [&] { exponential_average(ctx, w, 0.999, a); });
  report_bytes(state, 12 * P);
}
BENCHMARK(average_bench)->Name("exponential_average")->UseManualTime()->ArgName("P")->Arg(10 << 20);

void zero_bench(benchmark::State& state) {
  Context ctx(Device::cpu, threads(), 0);
  const TestTensor t = drawn({state.range(0)}, DType::f32);
  time_cold(state, [&] { zero(ctx, t); });
  report_bytes(state, t.view().bytes());
}
BENCHMARK(zero_bench)->Name("zero")->UseManualTime()->ArgName("P")->Arg(10 << 20);

void convert_bench(benchmark::State& state) {
  Context ctx(Device::cpu, threads(), 0);
  const TestTensor from = drawn({state.range(0)}, DType::f32);
  const TestTensor to = drawn({state.range(0)}, DType::bf16);
  const bool widen = state.range(1) != 0;
  time_cold(state, [&] { widen ? convert(ctx, to, from) : convert(ctx, from, to); });
  report_bytes(state, 6 * state.range(0));
}
BENCHMARK(convert_bench)
    ->Name("convert")
    ->UseManualTime()
    ->ArgNames({"P", "to_f32"})
    ->ArgsProduct({{10 << 20}, {0, 1}});

}  // namespace
}  // namespace octavo::bench

BENCHMARK_MAIN();
