#pragma once

#include <memory>

#include "comm/group.h"

namespace octavo {

class MpiWorker;

/// The ranks that mpirun started, talking through MPI.
///
/// One thread of ours, made here, is the only one that ever calls MPI: sums run there while the
/// caller computes, and no MPI library's view of threads matters. The constructor initialises MPI
/// and the destructor finalises it, so a process makes one MpiGroup in its life.
///
/// The end of a run, whatever the cause, is one message and a non-zero exit of every rank:
///   - an exception or end_all() on a rank: rank 0 says it for that rank;
///   - a process that vanishes (killed, exit()): the lowest rank left on its host says so;
///   - a collective past the time limit: every rank names its last collective.
/// A destructor that runs because of an exception ends the peers in silence; the exception goes on
/// to whoever reports it.
class MpiGroup final : public Group {
 public:
  static constexpr double kDefaultTimeLimit = 600.0;

  /// @throws DeviceError  MPI can't be initialised.
  MpiGroup();
  ~MpiGroup() override;

  void broadcast(std::span<std::byte> bytes, int root) override;
  void barrier() override;
  Ticket start_all_reduce(const Tensor& slice) override;
  void wait(Ticket ticket) override;
  void set_time_limit(double seconds) override;
  [[noreturn]] void end_all(const std::string& message, int exit_code) override;

 protected:
  void reduce(void* values, std::int64_t count, DType type) override;
  void gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) override;

 private:
  std::unique_ptr<MpiWorker> worker_;
  int exceptions_at_birth_;
};

}  // namespace octavo
