#include "core/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/file.h"

namespace octavo {
namespace {

const FlatSetting* find(std::span<const FlatSetting> settings, const std::string& key) {
  const auto at = std::ranges::find(settings, key, &FlatSetting::key);
  return at == settings.end() ? nullptr : &*at;
}

}  // namespace

ConfigNode load_config(const std::filesystem::path& file, std::span<const std::string> overrides) {
  ConfigNode root = parse_config(read_file(file), file.string());
  for (const std::string& assignment : overrides) set_value(root, assignment);
  return root;
}

std::vector<SettingDifference> fixed_differences(std::span<const FlatSetting> before,
                                                 std::span<const FlatSetting> now) {
  static const std::string kAbsent = "(absent)";
  std::vector<SettingDifference> differences;
  for (const FlatSetting& setting : now) {
    const FlatSetting* old = find(before, setting.key);
    if (!setting.may_change && (old == nullptr || old->value != setting.value))
      differences.push_back({setting.key, old != nullptr ? old->value : kAbsent, setting.value});
  }
  for (const FlatSetting& setting : before)
    if (!setting.may_change && find(now, setting.key) == nullptr)
      differences.push_back({setting.key, setting.value, kAbsent});
  return differences;
}

std::string format_help(std::span<const SettingHelp> rows) {
  constexpr const char* kIndent = "    ";
  constexpr const char* kMayChange = "; may change on resume";
  std::string text;
  for (const SettingHelp& row : rows)
    text += fmt::format("{} = {}\n{}{}", row.key, row.value, wrapped(row.help, kIndent),
                        wrapped(row.accepted + (row.may_change ? kMayChange : ""), kIndent));
  return text;
}

}  // namespace octavo
