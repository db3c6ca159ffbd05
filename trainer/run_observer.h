#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "trainer/metrics.h"
#include "trainer/progress.h"
#include "trainer/report_window.h"
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
  Progress progress(const TrainingState& state) const;

  Setup setup_;
  std::int64_t first_update_ = 0;  ///< of this start
  std::unique_ptr<MetricsLog> metrics_;
  std::unique_ptr<ProgressDisplay> display_;
  ReportWindow window_;  ///< since the last report
};

}  // namespace octavo
