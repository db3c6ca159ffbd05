#pragma once

#include <filesystem>

namespace octavo {

/// Keeps other trainings out of a run's folder: two that write there would spoil each other's
/// checkpoints. RUN/lock names the process that holds it; the system undoes the lock however that
/// process ends.
class RunLock {
 public:
  /// @param patience  seconds to wait for the holder to end: one that was killed takes a while.
  /// @throws UserError  another process holds it, or the folder can't be written.
  explicit RunLock(const std::filesystem::path& run, double patience = 5.0);
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  ~RunLock();

 private:
  int descriptor_;
};

}  // namespace octavo
