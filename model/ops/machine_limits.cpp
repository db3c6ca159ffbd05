#include "model/ops/machine_limits.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "core/context.h"
#include "core/parallel.h"
#include "core/philox.h"
#include "model/ops/elementwise.h"
#include "model/ops/linear.h"

namespace octavo {
namespace {

constexpr std::int64_t kSide = 1024;                       // of the product's matrices
constexpr std::int64_t kSmallSide = 128;                   // in float64, which goes slowly
constexpr std::int64_t kCopied = std::int64_t{64} << 20;   // bytes, beyond the caches
constexpr std::int64_t kScratch = std::int64_t{32} << 20;  // for the product library
constexpr int kLeastTrials = 3;
constexpr double kSeconds = 0.1;  // of trials

/// The least time of `run` in some trials, the first of which, which prepares, does not count.
template <typename F>
double least_seconds(F&& run) {
  using Clock = std::chrono::steady_clock;
  run();
  double least = 0, sum = 0;
  for (int trial = 0; trial < kLeastTrials || sum < kSeconds; ++trial) {
    const Clock::time_point begin = Clock::now();
    run();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    least = trial == 0 ? seconds : std::min(least, seconds);
    sum += seconds;
  }
  return least;
}

/// Uniform in [-1, 1).
void draw(const Tensor& to) {
  RandomStream random(0);
  float* const out = to.data<float>();
  for (std::int64_t i = 0; i < to.elements(); ++i)
    out[i] = static_cast<float>(2 * random.uniform() - 1);
}

double product_rate(int threads, DType type) {
  const std::int64_t side = type == DType::f64 ? kSmallSide : kSide;
  Context ctx(Device::cpu, threads, kScratch);
  Arena arena(side * side * static_cast<std::int64_t>(3 * bytes_of(type) + sizeof(float)));
  const Tensor drawn = arena.allocate({side, side}, DType::f32);
  const Tensor x = arena.allocate({side, side}, type), weight = arena.allocate({side, side}, type);
  const Tensor y = arena.allocate({side, side}, type);
  draw(drawn);  // a processor may clock higher over zeros than over data
  convert(ctx, drawn, x);
  convert(ctx, drawn, weight);
  const double seconds = least_seconds([&] { linear_forward(ctx, {.x = x, .weight = weight}, y); });
  return 2.0 * static_cast<double>(side * side * side) / seconds;
}

double copy_rate(int threads) {
  const Context ctx(Device::cpu, threads, 0);
  const std::vector<char> from(kCopied, 1);
  std::vector<char> to(kCopied);
  const double seconds = least_seconds([&] {
    parallel_for(ctx, kCopied, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(to.data() + begin, from.data() + begin, static_cast<std::size_t>(end - begin));
    });
  });
  return 2.0 * static_cast<double>(kCopied) / seconds;
}

}  // namespace

MachineLimits measure_limits(int threads, DType type) {
  return {.flops = product_rate(threads, type), .bytes = copy_rate(threads)};
}

}  // namespace octavo
