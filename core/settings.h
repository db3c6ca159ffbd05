#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config_tree.h"
#include "core/error.h"
#include "core/settings_output.h"
#include "core/settings_reader.h"

/// Settings: one describe() per struct reads YAML and `--set`, checks, prints help, writes
/// resolved.yaml and tells what may change when a run is resumed.
///
///     struct OptimizerConfig {
///       double learning_rate = 5e-4;
///       std::optional<double> clip_norm = 1.0;       // a number or none
///       std::optional<std::int64_t> max_tokens;      // an integer or auto
///       Schedule schedule = Schedule::inverse_sqrt;  // EnumNames<Schedule> beside the enum
///       std::string output;
///       std::vector<Corpus> train;                   // Corpus has a describe() of its own
///       AverageConfig average;
///
///       template <typename Visitor>
///       void describe(Visitor& v) {
///         v.setting("learning_rate", learning_rate, "peak rate", v.open(0, 1));
///         v.setting("clip_norm", clip_norm, "global gradient norm", v.above(0));
///         v.setting("max_tokens", max_tokens, "target tokens of a micro-batch", v.at_least(1),
///                   v.empty_is("auto"), v.may_change());
///         v.setting("schedule", schedule, "how the rate moves");
///         v.setting("output", output, "the run's folder", v.required());
///         v.setting("train", train, "training corpora", v.required());
///         v.section("average", average, "averaging of weights", v.may_change());
///         v.check(learning_rate < 0.1 || clip_norm, "clip_norm",
///                 "it must be a number when learning_rate is above 0.1");
///       }
///     };
///
/// Types: bool, int, std::int64_t, double, std::string, enums, std::optional of these, std::vector
/// of these, std::vector of structs with describe(). Rules: core/setting_rules.h. What is not given
/// keeps the value the struct had. check(holds, name, text) ties settings of a section to each
/// other: it comes after them, `text` completes "NAME is VALUE; ", and every visitor evaluates
/// `holds`.
///
///     Config config;
///     read_settings(config, "configs/x.yaml", overrides);  // overrides:
///     "trainer.max_updates=1000" write_file(run / "resolved.yaml", resolved_yaml(config));
///     std::cout << format_help(list_settings<Config>());
///     for (const SettingDifference& d : fixed_differences(flatten(old), flatten(config))) ...
namespace octavo {

/// A fixed setting whose value is not what it was. "(absent)" if only one side has the key.
struct SettingDifference {
  std::string key, before, now;
};

/// Every setting with its value, in the order of describe().
template <typename Settings>
std::vector<FlatSetting> flatten(Settings settings) {
  std::vector<FlatSetting> flat;
  SettingsFlattener visitor(flat);
  settings.describe(visitor);
  return flat;
}

/// Every setting with its default and meaning, in the order of describe().
template <typename Settings>
std::vector<SettingHelp> list_settings(Settings defaults = {}) {
  std::vector<SettingHelp> rows;
  SettingsLister visitor(rows);
  defaults.describe(visitor);
  return rows;
}

/// A complete YAML file: every setting with its value, its meaning as a comment. Reading it gives
/// equal settings, doubles to the last bit.
template <typename Settings>
std::string resolved_yaml(Settings settings) {
  SettingsWriter visitor;
  settings.describe(visitor);
  return visitor.text();
}

/// Fills `settings` from a parsed file. @throws UserError  "FILE:LINE: what; why, what next".
template <typename Settings>
void read_settings(Settings& settings, const ConfigNode& root) {
  SettingsReader::State state;
  for (const SettingHelp& row : list_settings<Settings>()) state.all_keys.push_back(row.key);
  SettingsReader visitor(root, "", state);
  settings.describe(visitor);
  visitor.finish();
  if (!state.missing.empty()) throw UserError(state.missing);
}

/// The tree of a YAML file with overrides applied. @throws UserError
ConfigNode load_config(const std::filesystem::path& file, std::span<const std::string> overrides);

/// Fills `settings` from a YAML file and then from `overrides`, each "a.b.c=VALUE" as given to
/// --set; of two overrides of one setting the last counts. @throws UserError
template <typename Settings>
void read_settings(Settings& settings, const std::filesystem::path& file,
                   std::span<const std::string> overrides = {}) {
  read_settings(settings, load_config(file, overrides));
}

/// Settings that are not marked may_change() and differ, in the order of `now`, then of `before`.
std::vector<SettingDifference> fixed_differences(std::span<const FlatSetting> before,
                                                 std::span<const FlatSetting> now);

/// The table that `octavo settings` prints: "KEY = DEFAULT  [what is accepted]" and the meaning.
std::string format_help(std::span<const SettingHelp> rows);

}  // namespace octavo
