#pragma once

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/context.h"
#include "tests/testkit/tensors.h"

namespace octavo::bench {

/// Threads the ops run on: what OMP_NUM_THREADS or the machine says.
int threads();

/// bytes_per_second = compulsory bytes moved per second; "copy" = their share of this machine's
/// copy bandwidth, measured once at the start.
void report_bytes(benchmark::State& state, std::int64_t bytes);
/// items_per_second = FLOP/s.
void report_flops(benchmark::State& state, std::int64_t flops);

/// FLOP/s of float32 multiply-adds in registers, on all threads, measured once.
double multiply_add_peak();

/// Bytes per second, read and written, of a copy far larger than the caches.
double copy_bandwidth();

/// Evicts what a previous iteration left in the caches, so that memory-bound ops are timed against
/// memory and not against the cache.
void flush_caches();

/// Times `run` once per iteration with cold caches, and sets the iteration's time.
template <typename F>
void time_cold(benchmark::State& state, F&& run) {
  for (auto _ : state) {
    flush_caches();
    const auto start = std::chrono::steady_clock::now();
    run();
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
}

}  // namespace octavo::bench
