#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "trainer/trainer.h"

namespace octavo {

/// Shows a training to people and machines: the log, the progress line, metrics.jsonl, TensorBoard.
class RunObserver final : public TrainingObserver {
 public:
  struct Setup {
    std::filesystem::path run;
    bool live;  ///< one line that is redrawn, else a line per report
    std::int64_t report_every;
    std::optional<std::int64_t> max_updates;
    std::optional<double> max_minutes;
    int ranks, threads;
  };
  explicit RunObserver(const Setup& setup);

  void started(const TrainingState& state, const MemoryPlan& plan) override;
  void stepped(const StepReport& report, const TrainingState& state) override;
  void validated(const ValidationResult& result, const TrainingState& state, bool best) override;
  void saved(const std::filesystem::path& checkpoint) override;
  void ended(TrainingEnd end, const TrainingState& state);

 private:
  Setup setup_;
};

}  // namespace octavo
