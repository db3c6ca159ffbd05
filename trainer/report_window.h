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

  /// Loss and nll are means that weigh each update by its target tokens. They and the gradient's
  /// norm leave skipped updates out, one of which would make them infinite; if there are no others
  /// they are those of the last one. @throws InternalError  it is empty.
  /// @param training_seconds  of the whole run.
  TrainingReport report(double training_seconds) const;

 private:
  StepReport last_{};
  std::int64_t updates_ = 0, skipped_ = 0;
  std::int64_t source_tokens_ = 0, target_tokens_ = 0, sentences_ = 0;
  double made_tokens_ = 0;                // of updates that were not skipped
  double loss_ = 0, nll_ = 0, norm_ = 0;  // their sums: over tokens; over updates
  double seconds_ = 0, data_seconds_ = 0, collective_seconds_ = 0;
  double utilised_seconds_ = 0;  // in which products at their peak would have been done
};

}  // namespace octavo
