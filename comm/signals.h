#pragma once

#include <csignal>
#include <span>

#include "comm/group.h"

namespace octavo {

/// Turns requests to stop into a flag that the loop reads between updates.
///
/// SIGINT, SIGTERM, SIGHUP and SIGUSR1 (what launch/train.sh and batch systems send) ask to stop. A
/// second one, a second or more after the first, ends the process at once, as does the first one
/// before arm() was called: there is nothing to save yet, and a peer may never come.
///
/// Under mpirun two more rules hold. Open MPI 4.1 announces the end of a job by SIGCONT and sends
/// SIGTERM only odls_base_sigkill_timeout seconds later, then SIGKILL after as long again. So
/// SIGCONT from the parent process is a request, too, and SIGTERM from it is never a second one.
class StopSignals {
 public:
  /// Installs the handlers; one object at a time.
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  /// Puts the former handlers back.
  ~StopSignals();

  /// From now on a signal asks politely, on all ranks: they call it together. The launcher is told.
  void arm(Group& group);
  /// Whether this process was asked to stop.
  bool requested() const;

 private:
  static constexpr int kSignals = 5;
  struct sigaction former_[kSignals];
};

/// The tiny reduction at the end of each update: `values` become their sums over the ranks.
///
/// @param values  at most kMostControlValues, in place; equal counts on all ranks.
/// @param stop    whether this rank wants to stop.
/// @returns whether any rank wants to: the same answer on all ranks, so all stop at this update.
bool reduce_control(Group& group, std::span<double> values, bool stop);
inline constexpr std::size_t kMostControlValues = 63;

}  // namespace octavo
