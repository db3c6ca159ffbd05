// Scenario of an update in its steady state: it takes no memory (C++ side; MPI's own pools aside).
#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "comm/buckets.h"
#include "comm/signals.h"
#include "core/error.h"
#include "tests/comm/scenarios.h"

namespace {
std::atomic<long> allocations = 0;
}

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace octavo {

void allocate_nothing(double) {
  const auto group = join_ranks();
  run_together(*group, [&] {
    constexpr std::int64_t kSlice = 100000;
    std::vector<float> flat(3 * kSlice, 1.0f);
    const GradientSlice slices[] = {{0, kSlice}, {kSlice, 2 * kSlice}, {2 * kSlice, 3 * kSlice}};
    GradientBuckets buckets(*group, Tensor(flat.data(), {3 * kSlice}, DType::f32), slices, 1);
    long before = 0;
    for (int update = 0; update < 20; ++update) {
      if (update == 2) before = allocations;
      for (const GradientSlice& slice : slices) buckets.ready(slice.first, slice.last);
      buckets.wait();
      double values[] = {1.0, 2.0};
      reduce_control(*group, values, false);
    }
    expect(allocations == before, "an update takes no memory");
  });
}

}  // namespace octavo
