#include "comm/buckets.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "core/error.h"

namespace octavo {

GradientBuckets::GradientBuckets(Group& group, const Tensor& gradients,
                                 std::span<const GradientSlice> slices, std::int64_t bucket_bytes)
    : group_(group), gradients_(gradients) {
  expect(gradients.rank() == 1 && gradients.contiguous(), "GradientBuckets: one flat buffer");
  expect(gradients.dtype() == DType::f32 || gradients.dtype() == DType::f64,
         "GradientBuckets: gradients are f32 or f64");
  expect(bucket_bytes >= 1, "GradientBuckets: a bucket holds at least a byte");
  const auto width = static_cast<std::int64_t>(bytes_of(gradients.dtype()));
  std::int64_t covered = 0;
  for (const GradientSlice& slice : slices) {
    expect(slice.first >= covered && slice.last >= slice.first,
           "GradientBuckets: slices must ascend and not overlap");
    expect(slice.last <= gradients.elements(), "GradientBuckets: a slice leaves the buffer");
    covered = slice.last;
    if (slice.first == slice.last) continue;
    const bool joins = !buckets_.empty() && buckets_.back().last == slice.first &&
                       (buckets_.back().last - buckets_.back().first) * width < bucket_bytes;
    if (!joins)
      buckets_.push_back({.first = slice.first, .last = slice.first, .missing = 0, .ticket = 0});
    buckets_.back().last = slice.last;
  }
  for (Bucket& bucket : buckets_) bucket.missing = bucket.last - bucket.first;
}

GradientBuckets::~GradientBuckets() {
  try {
    for (std::size_t i = 0; i < started_; ++i) group_.wait(buckets_[i].ticket);
  } catch (const std::exception& e) {
    spdlog::error("[comm] while leaving: {}", e.what());
  }
}

void GradientBuckets::ready(std::int64_t first, std::int64_t last) {
  auto bucket = std::partition_point(buckets_.begin(), buckets_.end(),
                                     [&](const Bucket& b) { return b.last <= first; });
  for (; bucket != buckets_.end() && bucket->first < last; ++bucket) {
    const std::int64_t count = std::min(last, bucket->last) - std::max(first, bucket->first);
    expect(count <= bucket->missing, "GradientBuckets: a gradient was ready twice");
    bucket->missing -= count;
  }
  start_full_buckets();
}

BucketReport GradientBuckets::wait() {
  const auto begin = std::chrono::steady_clock::now();
  BucketReport report;
  const auto width = static_cast<std::int64_t>(bytes_of(gradients_.dtype()));
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const std::int64_t bytes = (buckets_[i].last - buckets_[i].first) * width;
    report.bytes += bytes;
    if (i < started_) report.overlapped += bytes;
    buckets_[i].missing = 0;
  }
  start_full_buckets();
  for (Bucket& bucket : buckets_) {
    group_.wait(bucket.ticket);
    bucket.missing = bucket.last - bucket.first;
  }
  started_ = 0;
  report.exposed_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

void GradientBuckets::start_full_buckets() {
  const auto width = static_cast<std::int64_t>(bytes_of(gradients_.dtype()));
  auto* bytes = static_cast<std::byte*>(gradients_.raw());
  for (; started_ < buckets_.size() && buckets_[started_].missing == 0; ++started_) {
    Bucket& bucket = buckets_[started_];
    bucket.ticket = group_.start_all_reduce(
        Tensor(bytes + bucket.first * width, {bucket.last - bucket.first}, gradients_.dtype()));
  }
}

}  // namespace octavo
