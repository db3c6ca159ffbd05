#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/group.h"
#include "core/tensor.h"

namespace octavo {

/// Elements [first, last) of the flat gradient buffer: the gradient of one parameter.
struct GradientSlice {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// What the sums of one update cost.
struct BucketReport {
  double exposed_seconds = 0.0;  ///< how long wait() kept the caller
  std::int64_t bytes = 0;        ///< gradients summed, counted once
  std::int64_t overlapped = 0;   ///< of these, bytes whose sum started before wait()
};

/// Sums a flat gradient buffer over the ranks, bucket by bucket, while backward goes on.
///
/// A bucket is a run of neighbouring slices. It is summed once all of it is ready and all earlier
/// buckets have started, so every rank starts the same sums in the same order, whatever the order
/// in which its own backward finishes. Elements that no slice names (frozen parameters) belong to
/// no bucket: nobody waits for them and nobody sums them.
///
///     GradientBuckets buckets(group, gradients, slices, config.bucket_bytes());
///     ... backward of the last micro-batch: buckets.ready(first, last) as slices become final
///     const BucketReport report = buckets.wait();   // gradients: summed over ranks
class GradientBuckets {
 public:
  /// @param gradients  [elements], f32 or f64; must outlive this.
  /// @param slices     what is trained, ascending, disjoint, in the order in which backward
  ///                   finishes; equal on all ranks.
  /// @param bucket_bytes  a bucket ends with the slice that reaches this size; at least 1.
  /// @throws InternalError  slices overlap, are out of order or leave the buffer.
  GradientBuckets(Group& group, const Tensor& gradients, std::span<const GradientSlice> slices,
                  std::int64_t bucket_bytes);
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;
  /// Waits for sums that have started: they still use the buffer.
  ~GradientBuckets();

  /// Elements [first, last) are final on this rank. Elements outside all slices are ignored.
  /// @throws InternalError  some were ready before.
  void ready(std::int64_t first, std::int64_t last);

  /// Takes everything that was not said to be ready as it is (parameters not used in this update,
  /// or a rank without work), waits for all sums and begins anew.
  BucketReport wait();

  /// Buckets in the order of their sums.
  int count() const { return static_cast<int>(buckets_.size()); }

 private:
  struct Bucket {
    std::int64_t first, last;
    std::int64_t missing;  // elements not ready yet
    Ticket ticket;
  };

  void start_full_buckets();

  Group& group_;
  Tensor gradients_;
  std::vector<Bucket> buckets_;
  std::size_t started_ = 0;  // buckets_[0 .. started_) are being summed
};

}  // namespace octavo
