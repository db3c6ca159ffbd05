#include "tests/bench/bench.h"

#include <omp.h>

#include <chrono>
#include <cstring>

#include "core/parallel.h"

namespace octavo::bench {
namespace {

constexpr std::int64_t kFar = std::int64_t{128} << 20;  // bytes, beyond any cache

void copy(std::vector<char>& to, const std::vector<char>& from) {
  const Context ctx(Device::cpu, threads(), 0);
  parallel_for(ctx, kFar, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(to.data() + begin, from.data() + begin, static_cast<std::size_t>(end - begin));
  });
}

}  // namespace

int threads() {
  return omp_get_max_threads();
}

double copy_bandwidth() {
  static const double measured = [] {
    std::vector<char> from(static_cast<std::size_t>(kFar), 1), to(from);
    double best = 1e9;
    for (int i = 0; i < 10; ++i) {
      const auto start = std::chrono::steady_clock::now();
      copy(to, from);
      best = std::min(
          best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return 2.0 * static_cast<double>(kFar) / best;
  }();
  return measured;
}

void flush_caches() {
  static std::vector<char> junk(static_cast<std::size_t>(kFar) / 2);
  const Context ctx(Device::cpu, threads(), 0);
  parallel_for(ctx, static_cast<std::int64_t>(junk.size()), 1 << 16,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; i += 64) {
                   ++junk[static_cast<std::size_t>(i)];
                 }
               });
}

void report_bytes(benchmark::State& state, std::int64_t bytes) {
  const auto total = static_cast<double>(bytes) * static_cast<double>(state.iterations());
  state.counters["bytes"] =
      benchmark::Counter(total, benchmark::Counter::kIsRate, benchmark::Counter::OneK::kIs1000);
  state.counters["copy"] =
      benchmark::Counter(total / copy_bandwidth(), benchmark::Counter::kIsRate);
}

void report_flops(benchmark::State& state, std::int64_t flops) {
  state.counters["flops"] =
      benchmark::Counter(static_cast<double>(flops) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate, benchmark::Counter::OneK::kIs1000);
}

}  // namespace octavo::bench
