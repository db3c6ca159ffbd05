#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "comm/mpi.h"
#include "core/dtype.h"

namespace octavo {

/// Collectives out of point-to-point messages that never block inside MPI, so that whoever runs
/// them can be told to stop, and so that the order of every sum is ours. For one thread only.
///
/// A sum of more than kSmallBytes is cut into pieces. Rank r owns the r-th part of each piece:
/// it receives that part from everybody, adds in rank order and sends the result to everybody.
/// Small sums do the same with rank 0 as the only owner: fewer messages, fewer processes to wake.
class MpiExchange {
 public:
  static constexpr std::int64_t kSmallBytes = 4096;
  /// A part. Messages beyond 1 MB stall Open MPI's shared memory when nobody polls all the time.
  static constexpr std::int64_t kPartBytes = 128 << 10;

  /// @param communicator  ours alone; not owned.
  /// @param while_waiting  called again and again while messages are under way; may throw.
  MpiExchange(MPI_Comm communicator, std::function<void()> while_waiting);

  void all_reduce(void* values, std::int64_t count, DType type);
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all);
  void broadcast(std::span<std::byte> bytes, int root);
  void barrier();

 private:
  struct Range {
    std::int64_t begin, count;
  };

  /// A tag that differs from the neighbouring collectives' and, but for rare chance, from another
  /// kind's or size's: ranks that disagree about what comes next wait for each other, and the
  /// watchdog says so, instead of mixing their bytes.
  void choose_tag(int kind, std::int64_t bytes);
  void send(const void* bytes, std::int64_t count, int to);
  void receive(void* bytes, std::int64_t count, int from);
  void wait_for_messages();
  void reduce_small(std::byte* values, std::int64_t count, DType type);
  void reduce_large(std::byte* values, std::int64_t count, DType type);
  /// The part of a piece of `piece.count` elements that rank `owner` adds up.
  Range part(const Range& piece, int owner) const;
  /// values[i] = sum over ranks, in order. Rank r's addends lie at scratch_ + r * kPartBytes,
  /// this rank's own in `values`.
  void add_up(std::byte* values, std::int64_t count, DType type) const;

  MPI_Comm communicator_;
  std::function<void()> while_waiting_;
  int rank_ = 0, size_ = 1;
  int tag_ = 0, largest_tag_ = 0;
  std::uint32_t sequence_ = 0;
  std::vector<MPI_Request> requests_;
  std::vector<int> finished_;  // what MPI_Testsome writes into
  std::vector<std::byte> scratch_;
};

}  // namespace octavo
