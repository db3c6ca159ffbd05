#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/group.h"
#include "comm/mpi_alarm.h"
#include "comm/mpi_exchange.h"
#include "comm/watchdog.h"

namespace octavo {

/// The thread of an MpiGroup: takes operations from a queue, carries them out in order, and ends
/// the process when this rank, a peer or the time limit says so.
class MpiWorker {
 public:
  enum class Kind : std::uint8_t { reduce, gather, broadcast, barrier };
  struct Operation {
    Kind kind = Kind::barrier;
    void* data = nullptr;
    std::int64_t count = 0;  ///< elements; bytes of one entry for `gather`
    DType type = DType::u8;
    int root = 0;
    const void* mine = nullptr;  ///< `gather`: this rank's entry
  };

  /// Starts the thread and waits until all ranks have met. @throws DeviceError
  explicit MpiWorker(double time_limit);
  MpiWorker(const MpiWorker&) = delete;
  MpiWorker& operator=(const MpiWorker&) = delete;
  ~MpiWorker();

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }

  Ticket submit(const Operation& operation);
  void wait(Ticket ticket);
  void set_time_limit(double seconds) { watchdog_->set_limit(seconds); }
  /// Finalises MPI; if `failing`, ends the peers instead. Nothing may be called afterwards.
  void leave(bool failing);
  [[noreturn]] void end_all(const std::string& message, int exit_code);

 private:
  /// Why this process must end.
  struct Cause {
    enum class Kind : std::uint8_t { failed, overdue, vanished };
    Kind kind = Kind::failed;
    int exit_code = 1;
    int rank = 0;  // whom it is about
    std::string text;
  };
  struct Member {  // what ranks tell each other when they meet
    std::int64_t pid, process_namespace;
    int host;  // lowest rank on the same host
  };

  void run();
  void meet();
  /// @param host  this rank on entry, the lowest rank of this host on return.
  std::vector<Member> exchange_members(int& host);
  void serve();
  void execute(const Operation& operation);
  /// Leaves MPI together with all ranks, or ends them if `failing_`.
  void finalise();

  /// Called while waiting: ends the process if an alarm has come or a cause was reported.
  void attend();
  /// Makes the worker end all ranks, once: later causes are forgotten. From any thread.
  void report(Cause cause);
  void report_overdue();
  void report_vanished(int rank);
  [[noreturn]] void obey(const Alarm& alarm);
  [[noreturn]] void end_for(const Cause& cause);
  /// Obeys the next alarm; returns if none comes.
  void await_alarm();
  /// Whether no lower rank is left on this host.
  bool first_left_on_host();
  /// Says `text` for the whole run.
  [[noreturn]] void speak_and_end(const std::string& text, int exit_code);
  void say(const std::string& text);
  /// What a process does whose worker is stuck.
  [[noreturn]] void end_alone(const Cause& cause);
  std::string message_of(const Cause& cause) const;

  int rank_ = 0, size_ = 1, local_rank_ = 0;
  double time_limit_;
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<MpiExchange> exchange_;
  std::unique_ptr<MpiAlarms> alarms_;
  MPI_Comm data_ = MPI_COMM_NULL, control_ = MPI_COMM_NULL;

  std::mutex mutex_;  // guards what follows, up to the thread
  std::condition_variable work_, done_;
  static constexpr Ticket kQueue = 1024;
  std::array<Operation, kQueue> queue_;
  Ticket submitted_ = 0, completed_ = 0;
  bool met_ = false, closing_ = false, failing_ = false;
  std::exception_ptr failure_;
  std::optional<Cause> cause_;
  std::vector<int> local_ranks_, gone_;
  std::atomic<bool> has_cause_ = false, spoken_ = false;
  std::atomic<bool> parting_ = false;  // all work is done; only MPI is to end

  std::thread thread_;
};

}  // namespace octavo
