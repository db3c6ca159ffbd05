// How a run of several ranks ends before its time: see MpiGroup for the promise.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "comm/last_words.h"
#include "comm/mpi_worker.h"

namespace octavo {
namespace {

using std::chrono::milliseconds;

// Rank 0 answers within one look for alarms; this is ample on a crowded machine.
constexpr milliseconds kOrderComes{2000};
// If the worker is stuck inside MPI, the process ends without it.
constexpr milliseconds kWorkerActs{4000};

// mpirun reads the ranks' pipes before it learns that they ended, if they wait so long.
constexpr milliseconds kPipesDrain{100};

// MPI_Abort would need the worker, and mpirun ends the run on any non-zero code anyway.
[[noreturn]] void end_process(int exit_code) {
  tell_exit_code(exit_code);
  spdlog::default_logger()->flush();
  std::this_thread::sleep_for(kPipesDrain);
  std::_Exit(exit_code);
}

}  // namespace

void MpiWorker::end_all(const std::string& message, int exit_code) {
  report({.kind = Cause::Kind::failed, .exit_code = exit_code, .rank = rank_, .text = message});
  for (;;) std::this_thread::sleep_for(kWorkerActs);
}

void MpiWorker::report(Cause cause) {
  {
    const std::lock_guard lock(mutex_);
    if (cause_) return;  // the first one is the one that matters
    cause_ = cause;
    has_cause_ = true;
  }
  work_.notify_one();
  std::thread([this, cause = std::move(cause)] {
    std::this_thread::sleep_for(kWorkerActs);
    end_alone(cause);
  }).detach();
}

void MpiWorker::report_overdue() {
  if (parting_) {
    spdlog::warn(
        "[comm] all ranks have done their work, but MPI takes too long to end: left without it");
    end_process(0);
  }
  report({.kind = Cause::Kind::overdue,
          .exit_code = 3,
          .rank = rank_,
          .text = watchdog_->last_collective() +
                  ": the time limit comm.timeout_seconds has passed. Another rank is stuck, "
                  "stopped or slow; each rank says what it did last."});
}

void MpiWorker::report_vanished(int rank) {
  {
    const std::lock_guard lock(mutex_);
    gone_.push_back(rank);
  }
  report({.kind = Cause::Kind::vanished,
          .exit_code = 3,
          .rank = rank,
          .text = "its process ended without a word: killed (by the kernel if memory ran out; "
                  "'dmesg' tells), crashed, or left by exit(). Start again to go on from the "
                  "newest checkpoint."});
}

void MpiWorker::attend() {
  if (const auto alarm = alarms_->poll()) obey(*alarm);
  if (!has_cause_) return;
  Cause cause;
  {
    const std::lock_guard lock(mutex_);
    cause = *cause_;
  }
  end_for(cause);
}

void MpiWorker::obey(const Alarm& alarm) {
  if (alarm.kind == Alarm::Kind::failed)
    speak_and_end(fmt::format("rank {}: {}", alarm.origin, alarm.text.data()), alarm.exit_code);
  if (alarm.kind == Alarm::Kind::overdue)
    say(fmt::format("[comm] rank {}: {}", rank_, watchdog_->last_collective()));
  end_process(alarm.exit_code);
}

void MpiWorker::end_for(const Cause& cause) {
  if (cause.kind == Cause::Kind::overdue) {
    say(message_of(cause));
    alarms_->send_to_all(
        {.kind = Alarm::Kind::overdue, .exit_code = cause.exit_code, .origin = rank_});
    end_process(cause.exit_code);
  }
  if (cause.kind == Cause::Kind::failed && rank_ != 0) {
    Alarm alarm{.kind = Alarm::Kind::failed, .exit_code = cause.exit_code, .origin = rank_};
    alarm.set_text(cause.text);
    alarms_->send(alarm, 0);
  }
  const bool ours_to_say = cause.kind == Cause::Kind::failed ? rank_ == 0 : first_left_on_host();
  if (!ours_to_say) await_alarm();
  speak_and_end(message_of(cause), cause.exit_code);
}

void MpiWorker::await_alarm() {
  const auto deadline = std::chrono::steady_clock::now() + kOrderComes;
  while (std::chrono::steady_clock::now() < deadline) {
    if (const auto alarm = alarms_->poll()) obey(*alarm);
    std::this_thread::sleep_for(milliseconds(1));
  }
}

bool MpiWorker::first_left_on_host() {
  const std::lock_guard lock(mutex_);
  const auto first = std::find_if(local_ranks_.begin(), local_ranks_.end(), [this](int r) {
    return std::find(gone_.begin(), gone_.end(), r) == gone_.end();
  });
  return *first == rank_;
}

void MpiWorker::speak_and_end(const std::string& text, int exit_code) {
  say(text);
  alarms_->send_to_all({.kind = Alarm::Kind::leave, .exit_code = exit_code, .origin = rank_});
  end_process(exit_code);
}

// The worker may be late, and the thread that stands in for it come first.
void MpiWorker::say(const std::string& text) {
  if (!spoken_.exchange(true)) say_last_words(text);
}

void MpiWorker::end_alone(const Cause& cause) {
  say(message_of(cause));
  end_process(cause.exit_code);
}

// An exception's own message begins with what it is about; the others are this room's.
std::string MpiWorker::message_of(const Cause& cause) const {
  if (cause.kind != Cause::Kind::failed)
    return fmt::format("[comm] rank {}: {}", cause.rank, cause.text);
  return size_ == 1 ? cause.text : fmt::format("rank {}: {}", cause.rank, cause.text);
}

}  // namespace octavo
