// The processor's peak in float32: chains of multiply-adds in registers, on the best instruction
// set, as kernels choose it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/peak.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// FLOPs of `rounds` multiply-adds of ten independent vectors; *sink keeps them from vanishing.
std::int64_t multiply_add(std::int64_t rounds, float* sink) {
  constexpr int kChains = 10;  // at least latency times throughput; fits 16 registers
  const hn::ScalableTag<float> d;
  hn::Vec<decltype(d)> sum[kChains];
  const auto factor = hn::Set(d, 0.999f + *sink), addend = hn::Set(d, 1e-3f);
#pragma GCC unroll 16
  for (auto& s : sum) s = addend;
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (auto& s : sum) s = hn::MulAdd(s, factor, addend);
  }
  auto total = hn::Zero(d);
  for (const auto& s : sum) total = hn::Add(total, s);
  *sink = hn::GetLane(total) * 1e-30f;
  return 2 * kChains * rounds * static_cast<std::int64_t>(hn::Lanes(d));
}

}  // namespace
}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <chrono>

#include "tests/bench/bench.h"

namespace octavo {
HWY_EXPORT(multiply_add);
namespace bench {

double multiply_add_peak() {
  static const double measured = [] {
    double best = 0;
    for (int trial = 0; trial < 10; ++trial) {
      std::int64_t flops = 0;
      const auto start = std::chrono::steady_clock::now();
#pragma omp parallel num_threads(threads()) reduction(+ : flops)
      {
        float sink = 0;
        flops += HWY_DYNAMIC_DISPATCH(multiply_add)(2'000'000, &sink);
        benchmark::DoNotOptimize(sink);
      }
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      best = std::max(best, static_cast<double>(flops) / seconds.count());
    }
    return best;
  }();
  return measured;
}

}  // namespace bench
}  // namespace octavo
#endif  // HWY_ONCE
