#pragma once

#include <cstdint>
#include <optional>

#include "trainer/reports.h"
#include "trainer/trainer.h"

namespace octavo {

/// Adds up what updates did until a report is due.
class ReportWindow {
 public:
  void add(const StepReport& step);
  void clear() { *this = {}; }
  bool empty() const { return updates_ == 0; }
  /// Target tokens and seconds of all updates in the window.
  std::int64_t target_tokens() const { return target_tokens_; }
  double seconds() const { return seconds_; }

  /// Means weigh each update by its target tokens: those of loss and nll over all updates, that of
  /// the gradient's norm over the updates that were made. @throws InternalError  it is empty.
  /// @param training_seconds  of the whole run.
  TrainingReport report(double training_seconds) const;

 private:
  StepReport last_{};
  std::int64_t updates_ = 0, skipped_ = 0;
  std::int64_t source_tokens_ = 0, target_tokens_ = 0, sentences_ = 0;
  double loss_ = 0, nll_ = 0;  // sums over tokens
  double norm_ = 0;            // sum over updates that were made
  double seconds_ = 0, data_seconds_ = 0, collective_seconds_ = 0;
};

}  // namespace octavo
