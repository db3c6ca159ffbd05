#include "comm/mpi_worker.h"

#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "comm/last_words.h"
#include "core/error.h"

namespace octavo {
namespace {

using std::chrono::milliseconds;

// An idle worker looks for alarms this often.
constexpr milliseconds kIdle{50};
// Ranks that can't leave together within this time leave alone.
constexpr double kLeaveSeconds = 20.0;

std::string_view name_of(MpiWorker::Kind kind) {
  switch (kind) {
    case MpiWorker::Kind::reduce:
      return "all-reduce";
    case MpiWorker::Kind::gather:
      return "all-gather";
    case MpiWorker::Kind::broadcast:
      return "broadcast";
    case MpiWorker::Kind::barrier:
      return "barrier";
  }
  return "?";
}

// Process numbers mean something only inside one namespace (containers).
std::int64_t process_namespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? static_cast<std::int64_t>(status.st_ino) : 0;
}

}  // namespace

MpiWorker::MpiWorker(double time_limit) : time_limit_(time_limit) {
  thread_ = std::thread([this] { run(); });
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return met_ || failure_ != nullptr; });
  if (met_) return;
  lock.unlock();
  thread_.join();
  std::rethrow_exception(failure_);
}

MpiWorker::~MpiWorker() {
  if (thread_.joinable()) thread_.join();
}

Ticket MpiWorker::submit(const Operation& operation) {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return submitted_ - completed_ < kQueue || failure_ != nullptr; });
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  queue_[static_cast<std::size_t>(submitted_ % kQueue)] = operation;
  ++submitted_;
  work_.notify_one();
  return submitted_;
}

void MpiWorker::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return completed_ >= ticket || failure_ != nullptr; });
  if (completed_ < ticket) std::rethrow_exception(failure_);
}

void MpiWorker::leave(bool failing) {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    failing_ = failing;
  }
  work_.notify_one();
  thread_.join();
}

void MpiWorker::run() {
  pthread_setname_np(pthread_self(), "comm");
  // Sleeps of 10 microseconds would otherwise last 60.
  prctl(PR_SET_TIMERSLACK, 1000UL);
  try {
    meet();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    done_.notify_all();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    met_ = true;
  }
  done_.notify_all();
  try {
    serve();
  } catch (const std::exception& e) {
    // Nobody is left who could catch it, and the peers must not wait.
    end_alone({.kind = Cause::Kind::failed, .exit_code = 3, .rank = rank_, .text = e.what()});
  }
}

void MpiWorker::meet() {
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "initialising");
  if (provided < MPI_THREAD_FUNNELED)
    throw DeviceError("MPI, initialising: this library refuses programs with threads");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "setting up errors");
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "asking for the rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size_), "asking for the number of ranks");
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &data_), "making a communicator");
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &control_), "making a communicator");

  int host = rank_;
  const std::vector<Member> members = exchange_members(host);
  std::vector<LocalPeer> peers;
  for (int r = 0; r < size_; ++r) {
    const Member& member = members[static_cast<std::size_t>(r)];
    if (member.host != host) continue;
    local_ranks_.push_back(r);
    if (r != rank_ && member.process_namespace == process_namespace())
      peers.push_back({.rank = r, .pid = static_cast<pid_t>(member.pid)});
  }
  alarms_ = std::make_unique<MpiAlarms>(control_);
  exchange_ = std::make_unique<MpiExchange>(data_, [this] { attend(); });
  watchdog_ = std::make_unique<Watchdog>(
      time_limit_, peers,
      Watchdog::Callbacks{.overdue = [this] { report_overdue(); },
                          .vanished = [this](int rank) { report_vanished(rank); }});
}

std::vector<MpiWorker::Member> MpiWorker::exchange_members(int& host) {
  MPI_Comm neighbours = MPI_COMM_NULL;
  check_mpi(
      MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &neighbours),
      "looking for ranks on this host");
  check_mpi(MPI_Comm_rank(neighbours, &local_rank_), "asking for the rank");
  check_mpi(MPI_Bcast(&host, 1, MPI_INT, 0, neighbours), "naming the host");
  check_mpi(MPI_Comm_free(&neighbours), "freeing a communicator");
  Member mine{.pid = getpid(), .process_namespace = process_namespace(), .host = host};
  std::vector<Member> all(static_cast<std::size_t>(size_));
  check_mpi(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE,
                          MPI_COMM_WORLD),
            "meeting the other ranks");
  return all;
}

void MpiWorker::serve() {
  for (;;) {
    Operation next;
    {
      std::unique_lock lock(mutex_);
      work_.wait_for(lock, kIdle,
                     [this] { return completed_ < submitted_ || closing_ || has_cause_; });
      if (closing_ && (failing_ || failure_ != nullptr || completed_ == submitted_)) break;
      if (completed_ == submitted_ || failure_ != nullptr) {
        lock.unlock();
        attend();
        continue;
      }
      next = queue_[static_cast<std::size_t>(completed_ % kQueue)];
    }
    std::exception_ptr failure;
    try {
      attend();
      execute(next);
    } catch (...) {
      failure = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      failure_ = failure;
      if (failure == nullptr) ++completed_;
    }
    done_.notify_all();
  }
  finalise();
}

void MpiWorker::execute(const Operation& operation) {
  watchdog_->begin(name_of(operation.kind), operation.count, operation.type);
  auto* bytes = static_cast<std::byte*>(operation.data);
  const auto count = static_cast<std::size_t>(operation.count);
  switch (operation.kind) {
    case Kind::reduce:
      exchange_->all_reduce(operation.data, operation.count, operation.type);
      break;
    case Kind::gather:
      exchange_->all_gather({static_cast<const std::byte*>(operation.mine), count},
                            {bytes, count * static_cast<std::size_t>(size_)});
      break;
    case Kind::broadcast:
      exchange_->broadcast({bytes, count}, operation.root);
      break;
    case Kind::barrier:
      exchange_->barrier();
      break;
  }
  watchdog_->end();
}

void MpiWorker::finalise() {
  if (failing_) {
    watchdog_->let_peers_go();
    alarms_->send_to_all({.kind = Alarm::Kind::leave, .exit_code = 3, .origin = rank_});
    return;
  }
  // Everybody is here before anybody may vanish.
  watchdog_->begin("leaving", 0, DType::u8);
  exchange_->barrier();
  watchdog_->let_peers_go();
  watchdog_->set_limit(kLeaveSeconds);
  parting_ = true;
  watchdog_->begin("finalising", 0, DType::u8);
  alarms_->stop();
  check_mpi(MPI_Comm_free(&data_), "freeing a communicator");
  check_mpi(MPI_Comm_free(&control_), "freeing a communicator");
  check_mpi(MPI_Finalize(), "finalising");
  watchdog_->end();
  if (rank_ == 0) tell_exit_code(0);
}

}  // namespace octavo
