#include "core/settings_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/suggest.h"

namespace octavo {
namespace {

using Kind = ConfigNode::Kind;

constexpr std::size_t kLongestEcho = 60;

/// The value as the user wrote it, shortened.
std::string echo(const ConfigNode& node) {
  std::string text;
  switch (node.kind) {
    case Kind::null:
      return "empty";
    case Kind::list:
      return "a list";
    case Kind::map:
      return "a section";
    case Kind::scalar:
      text = node.text;
  }
  if (text.size() > kLongestEcho) {
    std::size_t end = kLongestEcho;
    while ((text[end] & 0xC0) == 0x80) --end;  // not inside a character
    text = text.substr(0, end) + "...";
  }
  const bool number = !text.empty() && text.find_first_of("0123456789") <= 1;
  return number && !node.quoted ? text : fmt::format("'{}'", text);
}

/// What else to say about a value of the wrong type.
std::string advice(const ConfigNode& node) {
  if (node.kind == Kind::null) return "; give it a value";
  if (node.kind != Kind::scalar) return "";
  ConfigNode plain = node;
  plain.quoted = false;
  bool flag = false;
  double number = 0;
  if (node.quoted && (parse_bool(plain, flag) == ParseResult::ok ||
                      parse_number(plain, {}, number) == ParseResult::ok))
    return "; leave out the quotes";
  plain.text.erase(0, plain.text.find_first_not_of('0'));
  if (node.text != plain.text && parse_number(plain, {}, number) == ParseResult::ok)
    return fmt::format("; write {} (some programs take a leading 0 for octal)", plain.text);
  return "";
}

/// The last name of "a.b.c".
std::string_view last_name(std::string_view key) {
  return key.substr(key.rfind('.') + 1);
}

std::string unknown_advice(std::string_view name, const std::vector<std::string>& siblings,
                           const std::vector<std::string>& all_keys) {
  if (std::string near = did_you_mean(name, siblings); !near.empty()) return near;
  for (const std::string& key : all_keys)
    if (last_name(key) == name) return fmt::format("; did you mean '{}'?", key);
  return "; 'octavo settings' lists all";
}

}  // namespace

SettingsReader::SettingsReader(const ConfigNode& section, std::string path, State& state)
    : section_(section), path_(std::move(path)), state_(state) {
  if (section.kind != Kind::map && section.kind != Kind::null)
    throw UserError(fmt::format("{}: {} is {}; it must be a section, 'name: value' lines below it",
                                section.origin, path_, echo(section)));
}

const ConfigNode* SettingsReader::take(std::string_view name, std::string_view help,
                                       const SettingRules& rules) {
  expect(std::ranges::find(seen_, name, &Seen::name) == seen_.end(),
         "two settings of one section have the same name");
  const ConfigNode* node = section_.find(name);
  seen_.push_back({std::string(name), node != nullptr ? node->origin : section_.origin, ""});
  if (node == nullptr && rules.required && state_.missing.empty())
    state_.missing = fmt::format("{}: {} is not set and has no default: {}", section_.origin,
                                 join_key(path_, name), help);
  return node;
}

const ConfigNode& SettingsReader::take_section(std::string_view name) {
  if (const ConfigNode* node = take(name, "", {})) return *node;
  absent_.origin = section_.origin;
  return absent_;
}

void SettingsReader::accept(const ConfigNode& node, std::string_view name, ParseResult result,
                            const std::string& accepted, const SettingRules& rules) const {
  if (result == ParseResult::ok) return;
  const std::string key = join_key(path_, name);
  if (result == ParseResult::wrong_type)
    throw UserError(fmt::format("{}: {} is {}; it must be {}{}", node.origin, key, echo(node),
                                accepted, advice(node)));
  if (result == ParseResult::empty)
    throw UserError(fmt::format("{}: {} is empty; give it a value", node.origin, key));
  double number = 0;
  if (rules.range.unbounded() || parse_number(node, rules.range, number) == ParseResult::ok)
    throw UserError(fmt::format("{}: {} is {}; that is too large (or too near 0) to be kept",
                                node.origin, key, echo(node)));
  throw UserError(fmt::format("{}: {} is {}; it must be {}", node.origin, key, echo(node),
                              rules.range.description()));
}

void SettingsReader::accept_default(std::string_view name, bool allowed) const {
  const std::string message = "the default breaks its own rule: " + join_key(path_, name);
  expect(allowed, message.c_str());
}

void SettingsReader::expect_list(const ConfigNode& node, std::string_view name,
                                 const SettingRules& rules) const {
  if (node.kind == Kind::list && !(rules.required && node.children.empty())) return;
  throw UserError(fmt::format("{}: {} is {}; it must be a list of sections, each starting with '-'",
                              node.origin, join_key(path_, name),
                              node.kind == Kind::list ? "an empty list" : echo(node)));
}

void SettingsReader::check(bool holds, std::string_view name,
                           const std::string& requirement) const {
  if (holds) return;
  const auto seen = std::ranges::find(seen_, name, &Seen::name);
  expect(seen != seen_.end(), "check() names a setting that was not described before");
  throw UserError(fmt::format("{}: {} is {}; {}", seen->origin, join_key(path_, name), seen->value,
                              requirement));
}

void SettingsReader::finish() const {
  std::vector<std::string> names;
  for (const Seen& seen : seen_) names.push_back(seen.name);
  for (const ConfigNode& child : section_.children) {
    if (std::ranges::find(names, child.key) != names.end()) continue;
    throw UserError(fmt::format("{}: no setting {}{}", child.origin, join_key(path_, child.key),
                                unknown_advice(child.key, names, state_.all_keys)));
  }
}

}  // namespace octavo
