#include "trainer/metrics.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/lines.h"
#include "trainer/tensorboard.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class JsonWriter {
 public:
  explicit JsonWriter(Json& json) : json_(json) {}
  /// JSON has no word for what is not finite: it becomes null.
  template <typename T>
  void metric(const char* name, const T& value, const char*) {
    json_[name] = value;
  }

 private:
  Json& json_;
};

/// The event of a line of metrics.jsonl: each number a curve "kind/key".
std::string event_of(const Json& record) {
  std::vector<std::pair<std::string, float>> scalars;
  const std::string prefix = record.at("kind").get<std::string>() + "/";
  for (const auto& [key, value] : record.items()) {
    if (key == "time" || key == "update" || !(value.is_number() || value.is_null())) continue;
    scalars.emplace_back(prefix + key, value.is_null() ? NAN : value.get<float>());
  }
  return scalar_event(record.at("time").get<double>(), record.at("update").get<std::int64_t>(),
                      scalars);
}

/// The update of a line of metrics.jsonl; nothing if the line is no sound record.
std::optional<std::int64_t> update_of(std::string_view line) {
  try {
    const Json record = Json::parse(line);
    event_of(record);
    return record.at("update").get<std::int64_t>();
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

/// Drops records beyond `update` and damaged lines.
void restore_lines(const fs::path& path, std::int64_t update) {
  std::error_code error;
  if (!fs::exists(path, error) && !error) return;
  std::string kept;
  std::int64_t damaged = 0;
  LineReader reader(path);
  while (const auto line = reader.next()) {
    const std::optional<std::int64_t> at = update_of(*line);
    if (!at)
      ++damaged;  // e.g. the last one, cut short by a power failure
    else if (*at <= update)
      kept.append(*line) += '\n';
  }
  if (damaged > 0)
    spdlog::warn("[trainer] {}: {} lines are damaged and dropped", path.string(), damaged);
  if (kept.size() != fs::file_size(path, error) || error) write_file(path, kept);
}

/// TensorBoard reads a folder's files in the order of their names, which hold the time.
fs::path event_file(const fs::path& folder, double time) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw UserError(fmt::format("cannot make {}: {}", folder.string(), error.message()));
  return folder / fmt::format("events.out.tfevents.{:.0f}.octavo", std::floor(time));
}

}  // namespace

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

MetricsLog::MetricsLog(const fs::path& run, std::int64_t update, std::function<double()> clock)
    : clock_(std::move(clock)) {
  restore_lines(run / "metrics.jsonl", update);
  lines_ = std::make_unique<RecordFile>(run / "metrics.jsonl");
  const double now = clock_();
  events_ = std::make_unique<RecordFile>(event_file(run / "tensorboard", now));
  if (!events_->append(first_event(now) + restart_event(now, update + 1)))
    throw UserError(fmt::format("cannot begin {}; make room or mend the folder, and start again",
                                events_->path().string()));
}

template <typename Report>
void MetricsLog::write_record(const char* kind, const Report& report) {
  Json record;
  record["kind"] = kind;
  record["time"] = clock_();
  JsonWriter writer(record);
  report.describe(writer);
  const std::string line = record.dump() + "\n";
  lines_->append(line);
  // Of the text, where a number that is not finite has become null.
  events_->append(event_of(Json::parse(line)));
}

void MetricsLog::write(const TrainingReport& report) {
  write_record("train", report);
}

void MetricsLog::write(const ValidationReport& report) {
  write_record("validation", report);
}

}  // namespace octavo
