#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "data/update_builder.h"

namespace octavo {

/// Builds updates ahead on a thread of its own. One consumer takes them, in order.
class Prefetcher {
 public:
  /// @param data   what it names must outlive the prefetcher
  /// @param depth  updates that may lie ready, at least 1
  /// @throws UserError  see UpdateBuilder
  Prefetcher(const TrainingData& data, const UpdateSettings& settings, Cursor start,
             std::size_t depth = 3);
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  /// Stops the thread, at the latest when the update it is at is built.
  ~Prefetcher();

  /// The next update; it stays as it is until the next call.
  /// @throws what the thread met with, once all that it built before is taken; and again on every
  ///         later call.
  const UpdateBatches& next();

  /// How long next() has waited for the thread, in all.
  std::chrono::duration<double> waited() const { return waited_; }

 private:
  void run();

  UpdateBuilder builder_;
  std::vector<std::unique_ptr<UpdateBatches>> slots_;
  std::chrono::duration<double> waited_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  // Slot k % size holds update k. The consumer holds update taken_ - 1.
  std::size_t built_ = 0, taken_ = 0;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // last: it starts when all else is there
};

}  // namespace octavo
