#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "core/tensor.h"

namespace octavo {

/// Names a sum that was started; Group::wait() ends it.
using Ticket = std::int64_t;

/// The ranks of one run and what they do together.
///
/// Every rank calls the same collectives in the same order, from one thread at a time. The control
/// plane (all_reduce_sum, all_gather, broadcast, barrier) works on host memory and returns when it
/// is done. Gradients take start_all_reduce() and wait(), which leave the caller free in between.
///
/// Sums add rank 0, 1, 2, ... in that order, element by element: the same ranks give the same
/// bytes on every rank and in every run, however a buffer is cut.
///
/// @throws DeviceError  from every collective, when the transport failed. A peer that died or a
///     time limit that passed does not throw: it ends this process (see end_all).
class Group {
 public:
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// 0 <= rank() < size().
  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Rank among the processes of this host: picks a device.
  int local_rank() const { return local_rank_; }
  /// Whether this process runs on its own: no peers, no mpirun that waits for it.
  virtual bool alone() const { return false; }

  /// Sums each element over the ranks, in place. Spans have equal lengths on all ranks.
  void all_reduce_sum(std::span<float> values);
  void all_reduce_sum(std::span<double> values);
  void all_reduce_sum(std::span<std::int64_t> values);
  /// The sum of one number per rank.
  double sum(double value);
  std::int64_t sum(std::int64_t value);

  /// all[r] = `mine` of rank r. @param all  size() entries.
  template <typename T>
  void all_gather(const T& mine, std::span<T> all) {
    static_assert(std::is_trivially_copyable_v<T>, "structs travel as bytes");
    gather_bytes(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(all));
  }

  /// Overwrites `bytes` everywhere by those of rank `root`. Spans have equal lengths on all ranks.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;

  /// Returns when every rank has called it.
  virtual void barrier() = 0;

  /// Starts summing `slice` over the ranks, in place, and returns at once. Sums run in the order
  /// in which they were started. On CUDA they follow what is queued on the compute stream so far.
  /// @param slice  contiguous, f32 or f64, equal on all ranks but for its contents. Nobody may
  ///               touch it before wait().
  virtual Ticket start_all_reduce(const Tensor& slice) = 0;

  /// Waits until that sum is complete. On CUDA the compute stream waits, not the host.
  virtual void wait(Ticket ticket) = 0;

  /// How long a rank waits for its peers inside one collective before it ends the run.
  virtual void set_time_limit(double seconds) = 0;

  /// Ends all ranks: `message` is shown once for the whole run, with the rank's name, and every
  /// process leaves with `exit_code` (1..255). May be called from any thread.
  [[noreturn]] virtual void end_all(const std::string& message, int exit_code) = 0;

 protected:
  Group(int rank, int size, int local_rank) : rank_(rank), size_(size), local_rank_(local_rank) {}
  virtual void reduce(void* values, std::int64_t count, DType type) = 0;
  virtual void gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// @throws InternalError  unless start_all_reduce() takes this slice.
  static void expect_slice(const Tensor& slice);

  int rank_, size_, local_rank_;
};

/// One process, no peers: collectives are done at once.
class SingleGroup final : public Group {
 public:
  SingleGroup() : Group(0, 1, 0) {}

  bool alone() const override { return true; }
  void broadcast(std::span<std::byte> bytes, int root) override;
  void barrier() override {}
  Ticket start_all_reduce(const Tensor& slice) override;
  void wait(Ticket) override {}
  void set_time_limit(double) override {}
  [[noreturn]] void end_all(const std::string& message, int exit_code) override;

 protected:
  void reduce(void*, std::int64_t, DType) override {}
  void gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) override;
};

/// An MpiGroup if this process was started by mpirun or srun, else a SingleGroup.
std::unique_ptr<Group> join_ranks();

/// Runs `body`. An exception that leaves it on any rank ends all ranks with that one message and
/// the exit code of the exception (core/error.h); a process on its own simply throws it on.
///
/// Buffers that are summed must outlive `body`: while it unwinds, peers still send to them.
void run_together(Group& group, const std::function<void()>& body);

}  // namespace octavo
