#include "comm/watchdog.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/error.h"

namespace octavo {
namespace {

// glibc before 2.36 has no wrapper. Returns -1 if that process has ended, or where the kernel
// (before 5.3) or a sandbox refuses.
int open_pidfd(pid_t pid) {
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

// Between two looks at the clock, a fifth of a second apart, at most this much counts.
constexpr double kLongestLook = 0.5;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Watchdog::Watchdog(double limit_seconds, std::span<const LocalPeer> peers, Callbacks callbacks)
    : callbacks_(std::move(callbacks)), limit_seconds_(limit_seconds), since_(Clock::now()) {
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) throw DeviceError(system_reason("eventfd", errno));
  descriptors_.push_back({.fd = wake, .events = POLLIN, .revents = 0});
  ranks_.push_back(-1);
  for (const LocalPeer& peer : peers) {
    const int descriptor = open_pidfd(peer.pid);
    if (descriptor < 0) {
      unsignalled_.push_back(peer);
      continue;
    }
    descriptors_.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
    ranks_.push_back(peer.rank);
  }
  thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  const std::uint64_t one = 1;
  // A full counter would already have woken the thread: nothing to check.
  [[maybe_unused]] const ssize_t written = write(descriptors_[0].fd, &one, sizeof one);
  thread_.join();
  for (const pollfd& descriptor : descriptors_)
    if (descriptor.fd >= 0) close(descriptor.fd);
}

void Watchdog::set_limit(double seconds) {
  const std::lock_guard lock(mutex_);
  limit_seconds_ = seconds;
}

void Watchdog::begin(std::string_view kind, std::int64_t elements, DType type) {
  const std::lock_guard lock(mutex_);
  ++sequence_;
  kind_ = kind;
  elements_ = elements;
  type_ = type;
  running_ = true;
  since_ = last_look_ = Clock::now();
  waited_seconds_ = 0.0;
}

void Watchdog::end() {
  const std::lock_guard lock(mutex_);
  running_ = false;
  since_ = Clock::now();
}

void Watchdog::let_peers_go() {
  const std::lock_guard lock(mutex_);
  peers_may_go_ = true;
}

std::string Watchdog::last_collective() const {
  const std::lock_guard lock(mutex_);
  if (sequence_ == 0) return "no collective yet";
  return fmt::format("collective {} ({}, {} x {}), {}", sequence_, kind_, elements_, name_of(type_),
                     running_ ? fmt::format("waiting for {:.1f} s", seconds_since(since_))
                              : fmt::format("done {:.1f} s ago", seconds_since(since_)));
}

void Watchdog::watch() {
  pthread_setname_np(pthread_self(), "watchdog");
  for (;;) {
    look_at_peers();
    {
      const std::lock_guard lock(mutex_);
      if (closing_) return;
    }
    look_at_clock();
  }
}

void Watchdog::look_at_peers() {
  int pause_ms = 0;
  nfds_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    pause_ms = std::clamp(static_cast<int>(limit_seconds_ * 100), 10, 200);
    count = peers_may_go_ ? 1 : descriptors_.size();
  }
  const int ready = poll(descriptors_.data(), count, pause_ms);
  look_at_unsignalled_peers();
  if (ready <= 0) return;
  for (std::size_t i = 1; i < count; ++i) {
    if (descriptors_[i].fd < 0 || descriptors_[i].revents == 0) continue;
    close(descriptors_[i].fd);
    descriptors_[i].fd = -1;
    report_vanished(ranks_[i]);
  }
}

void Watchdog::look_at_unsignalled_peers() {
  std::erase_if(unsignalled_, [&](const LocalPeer& peer) {
    const bool ended = kill(peer.pid, 0) != 0 && errno == ESRCH;
    if (ended) report_vanished(peer.rank);
    return ended;
  });
}

void Watchdog::report_vanished(int rank) {
  {
    const std::lock_guard lock(mutex_);
    if (peers_may_go_ || closing_) return;
  }
  callbacks_.vanished(rank);
}

void Watchdog::look_at_clock() {
  {
    const std::lock_guard lock(mutex_);
    if (!running_ || reported_) return;
    waited_seconds_ += std::min(seconds_since(last_look_), kLongestLook);
    last_look_ = Clock::now();
    if (waited_seconds_ < limit_seconds_) return;
    reported_ = true;
  }
  callbacks_.overdue();
}

}  // namespace octavo
