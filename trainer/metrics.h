#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "trainer/record_file.h"
#include "trainer/reports.h"

namespace octavo {

/// Seconds since 1970.
double wall_time();

/// The curves of a run: RUN/metrics.jsonl and the same for TensorBoard in RUN/tensorboard/.
/// docs/formats/metrics.md. Rank 0 only.
///
/// A run that is resumed from a checkpoint goes over some updates again: what metrics.jsonl tells
/// of them is dropped, and TensorBoard is told to forget them, so that no curve has a point twice.
/// Troubles while training runs are reported and do not stop it (RecordFile).
class MetricsLog {
 public:
  /// @param run     its folder; must exist.
  /// @param update  updates done: records beyond are dropped. 0 for a new run.
  /// @param clock   gives seconds since 1970.
  /// @throws UserError  the files can't be written.
  MetricsLog(const std::filesystem::path& run, std::int64_t update,
             std::function<double()> clock = wall_time);

  void write(const TrainingReport& report);
  void write(const ValidationReport& report);

 private:
  template <typename Report>
  void write_record(const char* kind, const Report& report);

  std::function<double()> clock_;
  std::unique_ptr<RecordFile> lines_, events_;
};

}  // namespace octavo
