// Scenarios of gradient buckets: ranks finish their slices in different orders.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <random>
#include <thread>
#include <vector>

#include "comm/buckets.h"
#include "core/error.h"
#include "tests/comm/scenarios.h"

namespace octavo {
namespace {

constexpr std::int64_t kElements = 100000;
// Trained slices with a frozen gap [30000, 40000) and an empty slice.
constexpr GradientSlice kSlices[] = {{0, 1},         {1, 20000},     {20000, 30000},
                                     {40000, 40000}, {40000, 90001}, {90001, kElements}};

bool is_frozen(std::int64_t i) {
  return i >= 30000 && i < 40000;
}

template <typename T>
T gradient(int rank, int update, std::int64_t i) {
  return static_cast<T>((rank + 1) * (i % 1013) + update) / T(8);
}

// Whatever the order in which a rank's slices become ready, all ranks end with the same sums.
template <typename T>
void check_updates(Group& group, std::int64_t bucket_bytes) {
  std::vector<T> flat(kElements);
  GradientBuckets buckets(group, Tensor(flat.data(), {kElements}, kDTypeOf<T>), kSlices,
                          bucket_bytes);
  std::mt19937 shuffler(static_cast<unsigned>(group.rank()));
  for (int update = 0; update < 6; ++update) {
    for (std::int64_t i = 0; i < kElements; ++i)
      flat[static_cast<std::size_t>(i)] = gradient<T>(group.rank(), update, i);
    std::vector<GradientSlice> order(std::begin(kSlices), std::end(kSlices));
    std::shuffle(order.begin(), order.end(), shuffler);
    // Rank 1 has no work in every other update; the last slice is unused in update 3.
    if (group.rank() == 1 && update % 2 == 1) order.clear();
    for (const GradientSlice& slice : order)
      if (update != 3 || slice.last != kElements) buckets.ready(slice.first, slice.last);
    const BucketReport report = buckets.wait();
    expect(report.bytes == (kElements - 10000) * static_cast<std::int64_t>(sizeof(T)),
           "bytes that were summed");
    expect(report.overlapped <= report.bytes, "bytes that overlapped");
    for (std::int64_t i = 0; i < kElements; ++i) {
      T sum = gradient<T>(0, update, i);
      for (int r = 1; r < group.size(); ++r) sum += gradient<T>(r, update, i);
      const T wanted = is_frozen(i) ? gradient<T>(group.rank(), update, i) : sum;
      expect(flat[static_cast<std::size_t>(i)] == wanted, "a gradient after the sum");
    }
  }
}

}  // namespace

void sum_buckets(double) {
  const auto group = join_ranks();
  run_together(*group, [&] {
    for (const std::int64_t bucket_bytes : {1, 4, 80000, 100000000}) {
      check_updates<float>(*group, bucket_bytes);
      check_updates<double>(*group, bucket_bytes);
    }
  });
}

// Sums run while the caller does something else: they are complete before it waits.
void hide_sums(double) {
  const auto group = join_ranks();
  run_together(*group, [&] {
    constexpr std::int64_t kSlice = 100000;
    std::vector<float> flat(8 * kSlice, 1.0f);
    std::vector<GradientSlice> slices;
    for (std::int64_t i = 0; i < 8; ++i) slices.push_back({i * kSlice, (i + 1) * kSlice});
    GradientBuckets buckets(*group, Tensor(flat.data(), {8 * kSlice}, DType::f32), slices, 1);
    for (const GradientSlice& slice : slices) buckets.ready(slice.first, slice.last);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const std::atomic_ref<float> last(flat.back());
    while (last != static_cast<float>(group->size())) {
      expect(std::chrono::steady_clock::now() < deadline, "sums go on without the caller");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const BucketReport report = buckets.wait();
    expect(report.overlapped == report.bytes, "every sum started before the wait");
  });
}

}  // namespace octavo
