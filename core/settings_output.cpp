#include "core/settings_output.h"

#include <fmt/format.h>

#include <algorithm>

namespace octavo {
namespace {

constexpr std::size_t kColumns = 100;

}  // namespace

std::string wrapped(std::string_view text, std::string_view prefix) {
  const std::size_t width = kColumns - std::min(kColumns - 1, prefix.size());
  std::string lines;
  while (text.size() > width) {
    std::size_t end = text.rfind(' ', width);
    if (end == 0 || end == std::string_view::npos) end = text.find(' ', width);  // one long word
    if (end == std::string_view::npos) break;
    lines.append(prefix).append(text.substr(0, end)).append("\n");
    text.remove_prefix(end + 1);
  }
  return lines.append(prefix).append(text).append("\n");
}

void SettingsFlattener::add(std::string key, std::string value, const SettingRules& rules) {
  out_.push_back({std::move(key), std::move(value), may_change_ || rules.may_change});
}

void SettingsLister::add(std::string key, std::string value, std::string accepted,
                         std::string_view help, const SettingRules& rules) {
  out_.push_back({.key = std::move(key),
                  .value = rules.required ? "(required)" : std::move(value),
                  .accepted = std::move(accepted),
                  .help = std::string(help),
                  .may_change = may_change_ || rules.may_change});
}

void SettingsWriter::line(std::string_view name, std::string_view value, std::string_view help) {
  const std::string indent(indent_, ' ');
  const std::string entry = fmt::format("{}{}:{}{}", indent, name, value.empty() ? "" : " ", value);
  if (entry.size() + 4 + help.size() <= kColumns)
    text_ += fmt::format("{}  # {}\n", entry, help);
  else
    text_ += wrapped(help, indent + "# ") + entry + "\n";
}

void SettingsWriter::add_element(std::string_view lines) {
  std::size_t at = 0;
  while (lines.substr(at).find_first_not_of(' ') == lines.substr(at).find('#'))
    at = lines.find('\n', at) + 1;  // a comment has no place for the dash
  const std::size_t dash = lines.find_first_not_of(' ', at) - 2;
  text_.append(lines.substr(0, dash)).append("-").append(lines.substr(dash + 1));
}

}  // namespace octavo
