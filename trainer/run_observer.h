#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "trainer/metrics.h"
#include "trainer/progress.h"
#include "trainer/reports.h"
#include "trainer/trainer.h"

namespace octavo {

/// Shows a training to people and machines: the log, the progress line, metrics.jsonl, TensorBoard.
/// Opens them when training starts, so it may be made on any rank; rank 0 alone is told anything.
class RunObserver final : public TrainingObserver {
 public:
  struct Setup {
    std::filesystem::path run;
    ProgressStyle style;
    std::int64_t report_every;  ///< updates
    std::optional<std::int64_t> max_updates;
    std::optional<double> max_minutes;
    int ranks, threads;
  };
  explicit RunObserver(const Setup& setup);

  void started(const TrainingState& state, const MemoryPlan& plan) override;
  void stepped(const StepReport& step, const TrainingState& state) override;
  void validated(const ValidationResult& result, const TrainingState& state, bool best) override;
  void saved(const std::filesystem::path& checkpoint) override;
  void ended(TrainingEnd end, const TrainingState& state);

 private:
  /// Sums over the updates since the last report.
  struct Sums {
    std::int64_t updates = 0, skipped = 0, source_tokens = 0, target_tokens = 0, sentences = 0;
    std::int64_t counted_tokens = 0;  ///< target tokens of updates that were not skipped
    double loss = 0, nll = 0;         ///< times target tokens
    double norm = 0, seconds = 0, data_seconds = 0, collective_seconds = 0;
  };
  void add(const StepReport& step);
  Progress progress(const StepReport& last, const TrainingState& state) const;

  Setup setup_;
  std::unique_ptr<MetricsLog> metrics_;
  std::unique_ptr<ProgressDisplay> display_;
  Sums sums_;
};

}  // namespace octavo
