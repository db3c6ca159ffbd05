#include "configs/experiment.h"

#include <fmt/format.h>

#include <initializer_list>
#include <string_view>

#include "core/error.h"

namespace octavo {

namespace {

/// Where a setting was given: "configs/x.yaml:12"; the file's name if it has its default.
std::string origin_of(const ConfigNode& root, const std::filesystem::path& file,
                      std::initializer_list<std::string_view> key) {
  const ConfigNode* node = &root;
  for (const std::string_view name : key) {
    node = node->find(name);
    if (node == nullptr) return file.string();
  }
  return node->origin;
}

}  // namespace

Experiment read_experiment(const std::filesystem::path& file,
                           std::span<const std::string> overrides) {
  Experiment experiment;
  const ConfigNode root = load_config(file, overrides);
  if (root.kind == ConfigNode::Kind::null) {
    throw UserError(
        fmt::format("{}: the file has no settings at all; is it the right one?", file.string()));
  }
  read_settings(experiment, root);
  if (experiment.data.max_length > experiment.model.max_positions) {
    throw UserError(fmt::format(
        "{}: data.max_length is {}, but model.max_positions only {}: a longer sentence would have "
        "no positions. Raise the one or lower the other",
        origin_of(root, file, {"data", "max_length"}), experiment.data.max_length,
        experiment.model.max_positions));
  }
  if (!experiment.data.subwords.joint &&
      experiment.model.share_embeddings == SharedEmbeddings::all) {
    throw UserError(fmt::format(
        "{}: data.subwords.joint is false, so ids mean other subwords on each side, but "
        "model.share_embeddings is 'all'. Set it to decoder or none, or joint to true",
        origin_of(root, file, {"data", "subwords", "joint"})));
  }
  if (experiment.trainer.validation.on() && !experiment.data.dev.given()) {
    throw UserError(fmt::format(
        "{}: trainer.validation is on, but data.dev names no text. Give data.dev.source and "
        "data.dev.target, or leave every_updates and every_minutes out",
        origin_of(root, file, {"trainer", "validation"})));
  }
  return experiment;
}

void check_resumable(const Experiment& now, const std::string& saved_yaml,
                     const std::filesystem::path& checkpoint) {
  Experiment before;
  read_settings(before, parse_config(saved_yaml, (checkpoint / "settings.yaml").string()));
  const std::vector<FlatSetting> old_values = flatten(before), new_values = flatten(now);
  std::string list;
  for (const SettingDifference& d : fixed_differences(old_values, new_values)) {
    list += fmt::format("\n  {} was {}, is {}", d.key, d.before, d.now);
  }
  if (list.empty()) return;
  throw UserError(fmt::format(
      "{} was made with other settings, so this run can't go on from it:{}\nPut them back, or "
      "give another trainer.output; trainer.init_from starts a new run with its weights",
      checkpoint.string(), list));
}

}  // namespace octavo
