#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/dtype.h"

namespace octavo {

/// A process of another rank on this host.
struct LocalPeer {
  int rank;
  pid_t pid;
};

/// Watches, from a thread of its own, how long a collective takes and whether the other processes
/// of this host are alive. It only reports: the owner decides how to end.
///
/// Time in which this process was itself stopped (Ctrl-Z, a suspended machine) does not count.
class Watchdog {
 public:
  struct Callbacks {
    std::function<void()> overdue;           ///< once: a collective passed the time limit
    std::function<void(int rank)> vanished;  ///< once per peer: its process ended
  };

  /// Starts watching.
  Watchdog(double limit_seconds, std::span<const LocalPeer> peers, Callbacks callbacks);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  void set_limit(double seconds);

  /// A collective begins. @param kind  e.g. "all-reduce", a literal.
  void begin(std::string_view kind, std::int64_t elements, DType type);
  /// The collective that began last is complete.
  void end();
  /// From now on peers may leave.
  void let_peers_go();

  /// "collective 17 (all-reduce, 1000 x f32), waiting for 5.0 s", "... done 0.2 s ago" or
  /// "no collective yet".
  std::string last_collective() const;

 private:
  using Clock = std::chrono::steady_clock;

  void watch();
  /// Sleeps until a peer ends, the destructor wakes us or the next look at the clock is due.
  void look_at_peers();
  void look_at_unsignalled_peers();
  void report_vanished(int rank);
  void look_at_clock();

  Callbacks callbacks_;
  // [0] is an eventfd that wakes the thread to end it; [i] is the pidfd of the peer of rank
  // ranks_[i], readable once that process has ended. Entries done with hold -1, which poll skips.
  std::vector<pollfd> descriptors_;
  std::vector<int> ranks_;
  // Peers without a pidfd: they ended before we began, or the kernel (before 5.3) or a sandbox
  // refuses.
  std::vector<LocalPeer> unsignalled_;

  mutable std::mutex mutex_;  // guards what follows
  double limit_seconds_;
  std::int64_t sequence_ = 0;
  std::string_view kind_;
  std::int64_t elements_ = 0;
  DType type_ = DType::u8;
  bool running_ = false;
  bool reported_ = false;
  bool peers_may_go_ = false;
  bool closing_ = false;
  Clock::time_point since_;      // it began, or ended
  Clock::time_point last_look_;  // at the clock
  double waited_seconds_ = 0.0;  // in the collective, as counted by looks

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace octavo
