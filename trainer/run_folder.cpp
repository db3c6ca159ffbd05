#include "trainer/run_folder.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "core/file.h"
#include "trainer/checkpoint.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kPrefix = "step_";

fs::path best_file(const fs::path& run) {
  return checkpoints_folder(run) / "best.json";
}

std::string step_name(std::int64_t update) {
  return fmt::format("{}{:08}", kPrefix, update);
}

/// The update in "step_00001000"; nothing for other names.
std::optional<std::int64_t> update_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kPrefix.size());
  std::int64_t update = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), update);
  return update >= 0 && name == step_name(update) ? std::optional(update) : std::nullopt;
}

}  // namespace

fs::path checkpoints_folder(const fs::path& run) {
  return run / "checkpoints";
}

fs::path checkpoint_folder(const fs::path& run, std::int64_t update) {
  return checkpoints_folder(run) / step_name(update);
}

std::vector<StepCheckpoint> list_checkpoints(const fs::path& run) {
  std::vector<StepCheckpoint> found;
  const fs::path folder = checkpoints_folder(run);
  std::error_code error;
  if (!fs::exists(folder, error) && !error) return found;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    const std::optional<std::int64_t> update = update_of(i->path().filename().string());
    if (update && Checkpoint::is_there(i->path())) found.push_back({*update, i->path()});
  }
  if (error) throw UserError(fmt::format("cannot list {}: {}", folder.string(), error.message()));
  std::ranges::sort(found, {}, &StepCheckpoint::update);
  return found;
}

void warn_of_incomplete(const fs::path& run) {
  std::error_code error;  // list_checkpoints() reports it
  for (fs::directory_iterator i(checkpoints_folder(run), error), end; !error && i != end;
       i.increment(error)) {
    if (update_of(i->path().filename().string()) && !Checkpoint::is_there(i->path()))
      spdlog::warn("[trainer] {} has no manifest.json, so it is no whole checkpoint: passed over",
                   i->path().string());
  }
}

void write_best(const fs::path& run, const BestCheckpoint& best) {
  expect(std::isfinite(best.score), "write_best: such a score is no best");
  const Json json = {{"checkpoint", step_name(best.update)},
                     {"update", best.update},
                     {"metric", best.metric},
                     {"score", best.score}};
  write_file(best_file(run), json.dump(2) + "\n");
}

std::optional<BestCheckpoint> read_best(const fs::path& run) {
  std::error_code error;
  if (!fs::exists(best_file(run), error) && !error) return std::nullopt;
  try {
    const Json json = Json::parse(read_file(best_file(run)));
    return BestCheckpoint{.update = json.at("update").get<std::int64_t>(),
                          .metric = json.at("metric").get<std::string>(),
                          .score = json.at("score").get<double>()};
  } catch (const Json::exception& e) {
    throw UserError(
        fmt::format("{} is damaged: {}. Remove it, and the newest checkpoint counts as the best.",
                    best_file(run).string(), json_reason(e)));
  }
}

fs::path find_checkpoint(const fs::path& path) {
  std::error_code error;
  if (Checkpoint::is_there(path)) return path;
  if (!fs::exists(path, error))
    throw UserError(
        fmt::format("there is no {}; give a run's folder or a checkpoint, such as "
                    "RUN/checkpoints/step_00001000",
                    path.string()));
  const bool is_run = fs::is_directory(checkpoints_folder(path), error);
  if (error == std::errc::permission_denied)
    throw UserError("cannot look into " + system_reason(path.string(), error.value()));
  if (!is_run)
    throw UserError(
        fmt::format("{} is neither a checkpoint (a folder with a manifest.json) nor a "
                    "run (a folder with a folder 'checkpoints')",
                    path.string()));
  if (const std::optional<BestCheckpoint> best = read_best(path)) {
    fs::path folder = checkpoint_folder(path, best->update);
    if (!Checkpoint::is_there(folder))
      throw UserError(
          fmt::format("{} names {} as the best checkpoint, but it is gone. Name another "
                      "checkpoint of the run.",
                      best_file(path).string(), folder.string()));
    return folder;
  }
  const std::vector<StepCheckpoint> all = list_checkpoints(path);
  if (all.empty()) throw UserError(fmt::format("the run {} has no checkpoint yet", path.string()));
  return all.back().path;
}

std::vector<std::int64_t> expired(std::span<const std::int64_t> updates,
                                  const RetentionConfig& config, std::optional<std::int64_t> best) {
  const auto count = static_cast<std::int64_t>(updates.size());
  const std::int64_t newest = std::max<std::int64_t>(config.keep_last, 1);
  std::set<std::int64_t> stretches;  // that have their checkpoint
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t update = updates[static_cast<std::size_t>(i)];
    const std::int64_t stretch = config.keep_every ? update / *config.keep_every : 0;
    const bool first_of_stretch = stretch > 0 && stretches.insert(stretch).second;
    if (i < count - newest && !first_of_stretch && update != best) result.push_back(update);
  }
  return result;
}

void remove_expired(const fs::path& run, const RetentionConfig& config) {
  const std::optional<BestCheckpoint> best = read_best(run);
  std::vector<std::int64_t> updates;
  for (const StepCheckpoint& checkpoint : list_checkpoints(run))
    updates.push_back(checkpoint.update);
  for (const std::int64_t update :
       expired(updates, config, best ? std::optional(best->update) : std::nullopt))
    remove_checkpoint(checkpoint_folder(run, update));
}

}  // namespace octavo
