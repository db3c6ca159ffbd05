// What training would reach if matrix products were all it did: every product of one update, as a
// plan records them, timed by itself on random numbers.
//
//     OMP_PROC_BIND=close OMP_PLACES=cores build/cpu-release/tests/product_limit small|base
//     float32|bf16
//
// One update is 64 pairs of 32 + 32 tokens. Prints {"tgt_tok_s": N, "gflop_s": N}.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/token_batch.h"
#include "model/ops/linear.h"
#include "model/transformer.h"
#include "tests/bench/bench.h"

namespace octavo::bench {
namespace {

using testkit::TestTensor;

constexpr std::int64_t kPairs = 64, kLength = 32;
constexpr double kSeconds = 0.05;  // of trials of one product
constexpr std::int64_t kScratch = std::int64_t{512} << 20;

struct Size {
  ModelConfig model;
  std::int64_t vocabulary;
};

Size size_of(const std::string& name) {
  ModelConfig model;
  model.norm = NormPlace::pre;
  if (name == "base") return {model, 32000};
  model.width = 256;
  model.hidden = 1024;
  model.heads = 4;
  model.encoder_layers = model.decoder_layers = 3;
  return {model, 8000};
}

using ProductKey = std::tuple<std::string, std::array<std::int64_t, 3>>;

/// How often each product is made in one update.
std::map<ProductKey, int> products_of(const Size& size, DType type) {
  const Transformer model(size.model, size.vocabulary, size.vocabulary);
  Context ctx(Device::plan, threads(), 0);
  OpList ops;
  ctx.set_recorder(&ops);
  const Parameters parameters(model.table(), ctx, type, true);
  Arena memory;
  const Pass pass{.ctx = ctx, .parameters = parameters, .memory = memory, .random = {}};
  const TokenBatch batch = planned_batch(kPairs, kLength, kLength);
  Transformer::Saved saved;
  model.forward(pass, batch, {}, Tensor(nullptr, {2}, DType::f64), saved);
  model.backward(pass, batch, {}, saved, [](int) {});
  std::map<ProductKey, int> products;
  for (const OpCost& op : ops.ops()) {
    if (op.name.starts_with("linear_")) ++products[{std::string(op.name), op.shape}];
  }
  return products;
}

double seconds_of(const ProductKey& key, DType type) {
  const std::string& name = std::get<0>(key);
  const auto [N, O, I] = std::get<1>(key);
  Context ctx(Device::cpu, threads(), kScratch);
  RandomStream stream(1);
  const TestTensor x = TestTensor::random({N, I}, type, stream);
  const TestTensor weight = TestTensor::random({O, I}, type, stream);
  const TestTensor y = TestTensor::random({N, O}, type, stream);
  const TestTensor dx({N, I}, type), dweight = TestTensor::zeros({O, I}, DType::f32);
  const LinearArgs in{.x = x, .weight = weight};
  const auto run = [&] {
    if (name == "linear_forward") linear_forward(ctx, in, y);
    if (name == "linear_dx") linear_backward(ctx, in, y, {.dx = dx});
    if (name == "linear_dweight") linear_backward(ctx, in, y, {.dweight = dweight});
  };
  run();
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (double sum = 0; sum < kSeconds || times.size() < 5; sum += times.back()) {
    const Clock::time_point begin = Clock::now();
    run();
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

int print_limit(const std::string& size, const std::string& precision) {
  const DType type = precision == "bf16" ? DType::bf16 : DType::f32;
  double seconds = 0, flops = 0;
  for (const auto& [key, count] : products_of(size_of(size), type)) {
    const auto [N, O, I] = std::get<1>(key);
    seconds += count * seconds_of(key, type);
    flops += count * 2.0 * static_cast<double>(N * O * I);
  }
  fmt::print("{{\"tgt_tok_s\": {:.1f}, \"gflop_s\": {:.1f}}}\n",
             static_cast<double>(kPairs * kLength) / seconds, flops / seconds / 1e9);
  return 0;
}

}  // namespace
}  // namespace octavo::bench

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool known = words.size() == 2 && (words[0] == "small" || words[0] == "base") &&
                     (words[1] == "float32" || words[1] == "bf16");
  if (!known) {
    fmt::print(stderr, "usage: product_limit small|base float32|bf16\n");
    return 2;
  }
  return octavo::bench::print_limit(words[0], words[1]);
}
