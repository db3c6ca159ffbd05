#include "data/prefetch.h"

#include "core/error.h"

namespace octavo {

Prefetcher::Prefetcher(const TrainingData& data, const UpdateSettings& settings, Cursor start,
                       std::size_t depth)
    : builder_(data, settings, start) {
  expect(depth >= 1, "Prefetcher: depth must be at least 1");
  // One more for the update that the consumer holds.
  for (std::size_t i = 0; i < depth + 1; ++i) slots_.push_back(std::make_unique<UpdateBatches>());
  thread_ = std::thread([this] { run(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetcher::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    // Free are all slots but those that lie ready and the one that the consumer holds.
    changed_.wait(
        lock, [&] { return stopping_ || built_ - taken_ + (taken_ > 0 ? 1 : 0) < slots_.size(); });
    if (stopping_) return;
    UpdateBatches& slot = *slots_[built_ % slots_.size()];
    lock.unlock();
    std::exception_ptr failure;
    try {
      builder_.build(slot);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = failure;
    if (failure_ == nullptr) ++built_;
    changed_.notify_all();
    if (failure_ != nullptr) return;
  }
}

const UpdateBatches& Prefetcher::next() {
  using Clock = std::chrono::steady_clock;
  std::unique_lock lock(mutex_);
  if (built_ == taken_ && failure_ == nullptr) {
    const Clock::time_point before = Clock::now();
    changed_.wait(lock, [&] { return built_ > taken_ || failure_ != nullptr; });
    waited_ += Clock::now() - before;
  }
  if (built_ == taken_) std::rethrow_exception(failure_);
  const UpdateBatches& update = *slots_[taken_ % slots_.size()];
  ++taken_;
  changed_.notify_all();
  return update;
}

}  // namespace octavo
