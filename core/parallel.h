#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <utility>

#include "core/context.h"

namespace octavo {

/// A grain for parallel_for over items of `elements` each: enough work for a thread to be worth
/// waking, which costs some microseconds.
constexpr std::int64_t grain_of(std::int64_t elements) {
  constexpr std::int64_t kWork = 1 << 14;
  return std::max<std::int64_t>(1, kWork / std::max<std::int64_t>(1, elements));
}

/// Calls f(begin, end) on disjoint ranges that cover [0, n), on at most so many threads.
/// Ranges are cut at multiples of `grain`, so that small work stays on one thread. f may throw:
/// the first exception is thrown again here.
template <typename F>
void parallel_for(int most_threads, std::int64_t n, std::int64_t grain, F&& f) {
  const std::int64_t blocks = (n + grain - 1) / grain;
  const int threads = static_cast<int>(std::min<std::int64_t>(blocks, most_threads));
  if (threads <= 1) {
    if (n > 0) f(std::int64_t{0}, n);
    return;
  }
  std::exception_ptr failure;
#pragma omp parallel num_threads(threads)
  {
    const std::int64_t t = omp_get_thread_num(), count = omp_get_num_threads();
    const std::int64_t begin = blocks * t / count * grain;
    const std::int64_t end = std::min(n, blocks * (t + 1) / count * grain);
    try {
      if (begin < end) f(begin, end);
    } catch (...) {
#pragma omp critical
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

/// The same on the context's threads.
template <typename F>
void parallel_for(const Context& ctx, std::int64_t n, std::int64_t grain, F&& f) {
  parallel_for(ctx.threads(), n, grain, std::forward<F>(f));
}

/// Calls f(task) for each of n tasks of different sizes: a thread that is done takes the next.
template <typename F>
void parallel_tasks(const Context& ctx, std::int64_t n, F&& f) {
  std::atomic<std::int64_t> next = 0;
  parallel_for(ctx, ctx.threads(), 1, [&](std::int64_t, std::int64_t) {
    for (std::int64_t task = next++; task < n; task = next++) f(task);
  });
}

}  // namespace octavo
