#pragma once

#include <cstdint>
#include <memory>
#include <typeindex>
#include <unordered_map>

#include "core/arena.h"
#include "core/recorder.h"

namespace octavo {

/// Where ops run. `plan` runs nothing: ops check, record their cost and return.
enum class Device : std::uint8_t { cpu, cuda, plan };

/// What every op needs to run: the device, its threads, a scratch stack, who listens, and the
/// state that ops keep between calls (library handles, cached primitives).
///
/// One Context serves one thread of control. Moving it would leave ops' state behind: it can't.
class Context {
 public:
  /// @param threads  OpenMP threads used by CPU ops, at least 1.
  /// @param scratch  bytes of the scratch stack; on a plan it is measured instead.
  Context(Device device, int threads, std::int64_t scratch);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  Device device() const { return device_; }
  int threads() const { return threads_; }
  Arena& scratch() { return *scratch_; }

  /// Null when nobody listens. Not owned.
  Recorder* recorder() const { return recorder_; }
  void set_recorder(Recorder* recorder) { recorder_ = recorder; }

  /// What ops of one kind keep between calls, made at first use as T(Context&).
  template <typename T>
  T& state() {
    auto& slot = states_[std::type_index(typeid(T))];
    if (slot == nullptr) slot = std::make_shared<T>(*this);
    return *static_cast<T*>(slot.get());
  }

 private:
  Device device_;
  int threads_;
  std::unique_ptr<Arena> scratch_;
  Recorder* recorder_ = nullptr;
  std::unordered_map<std::type_index, std::shared_ptr<void>> states_;
};

/// Tells the recorder, if any, that an op begins, and at the end of the scope that it ended.
class OpScope {
 public:
  OpScope(Context& ctx, const OpCost& cost) : recorder_(ctx.recorder()) {
    if (recorder_ != nullptr) recorder_->begin(cost);
  }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;
  ~OpScope() {
    if (recorder_ != nullptr) recorder_->end();
  }

 private:
  Recorder* recorder_;
};

}  // namespace octavo
