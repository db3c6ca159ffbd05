#include "comm/signals.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>

#include "comm/last_words.h"
#include "core/error.h"

namespace octavo {
namespace {

constexpr std::array kHandled = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCONT};

// A signal to a whole process group reaches a rank twice, directly and through mpirun: what comes
// within this time is one request.
constexpr std::int64_t kOneRequestMs = 1000;

// Lock-free, so that handlers may use them.
std::atomic<bool> armed = false, under_mpirun = false, installed = false;
std::atomic<std::int64_t> requested_at_ms = 0;  // 0: not requested
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

std::int64_t now_ms() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1'000'000 + 1;
}

[[noreturn]] void end_at_once(int number) {
  // mpirun ends the job: what for, another knows.
  if (number == SIGCONT) _exit(128 + SIGTERM);
  // SIGUSR1 is how launch/train.sh hands on Ctrl-C.
  const int exit_code = 128 + (number == SIGUSR1 ? SIGINT : number);
  tell_exit_code(exit_code);
  _exit(exit_code);
}

void on_signal(int number, siginfo_t* info, void*) {
  const bool from_mpirun = under_mpirun && info->si_code <= 0 && info->si_pid == getppid();
  if (number == SIGCONT && !from_mpirun) return;
  if (!armed) end_at_once(number);
  std::int64_t first = 0;
  const std::int64_t now = now_ms();
  if (requested_at_ms.compare_exchange_strong(first, now)) return;
  const bool announced = from_mpirun && (number == SIGCONT || number == SIGTERM);
  if (!announced && now - first > kOneRequestMs) end_at_once(number);
}

}  // namespace

StopSignals::StopSignals() {
  expect(!installed.exchange(true), "StopSignals: one at a time");
  armed = false;
  requested_at_ms = 0;
  under_mpirun = std::getenv("OMPI_COMM_WORLD_RANK") != nullptr;
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kHandled.size(); ++i) sigaction(kHandled[i], &action, &former_[i]);
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kHandled.size(); ++i) sigaction(kHandled[i], &former_[i], nullptr);
  installed = false;
}

void StopSignals::arm(Group& group) {
  armed = true;
  group.barrier();
  if (group.rank() == 0) tell_ready();
}

bool StopSignals::requested() const {
  return requested_at_ms != 0;
}

bool reduce_control(Group& group, std::span<double> values, bool stop) {
  expect(values.size() <= kMostControlValues, "reduce_control: too many values");
  std::array<double, kMostControlValues + 1> message{};
  std::copy(values.begin(), values.end(), message.begin());
  message[values.size()] = stop ? 1.0 : 0.0;
  group.all_reduce_sum(std::span(message.data(), values.size() + 1));
  std::copy_n(message.begin(), values.size(), values.begin());
  return message[values.size()] > 0.0;
}

}  // namespace octavo
