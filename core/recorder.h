#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

/// What one call of an op costs, stated by the op itself. `name` must outlive the Recorder.
struct OpCost {
  std::string_view name;
  std::int64_t flops = 0;               ///< multiply and add count as two
  std::int64_t bytes = 0;               ///< compulsory memory traffic: every operand once
  std::array<std::int64_t, 3> shape{};  ///< of a product: rows, outputs, inputs; else zeros
};

/// Listens to every op of a Context: a plan keeps the list, a profile adds up seconds.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void begin(const OpCost& cost) = 0;
  virtual void end() = 0;
};

/// Keeps every record: for plans.
class OpList : public Recorder {
 public:
  void begin(const OpCost& cost) override { ops_.push_back(cost); }
  void end() override {}
  const std::vector<OpCost>& ops() const { return ops_; }
  std::int64_t flops() const;
  void clear() { ops_.clear(); }

 private:
  std::vector<OpCost> ops_;
};

/// Adds up calls, FLOPs, bytes and seconds per op name: for the metrics and `--profile`. An op that
/// runs inside another keeps its own time; the outer one is charged only what remains.
class Profile : public Recorder {
 public:
  struct Entry {
    std::int64_t calls = 0, flops = 0, bytes = 0;
    double seconds = 0;
  };
  void begin(const OpCost& cost) override;
  void end() override;
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  /// Of all ops that have begun.
  std::int64_t flops() const { return flops_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Open {
    Entry* entry;
    Clock::time_point since;
  };
  std::map<std::string, Entry, std::less<>> entries_;
  std::vector<Open> open_;
  std::int64_t flops_ = 0;
};

}  // namespace octavo
