#include "core/setting_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"

namespace octavo {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_plain_scalar(const ConfigNode& node) {
  return node.kind == ConfigNode::Kind::scalar && !node.quoted;
}

/// Removes a leading '+', which std::from_chars does not read, unless another sign follows.
std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

/// Digits first (behind a sign, perhaps a point), and not a 0 before more digits: YAML programs
/// disagree whether 010 is ten or eight.
bool has_number_shape(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text.size() > 1 && text[0] == '.') return is_digit(text[1]);
  if (text.empty() || !is_digit(text[0])) return false;
  return text[0] != '0' || text.size() == 1 || !is_digit(text[1]);
}

/// Whether plain `text` is always read as the text itself. Digits and words such as `none` could
/// be something else; punctuation could be YAML.
bool reads_as_text(std::string_view text) {
  static constexpr std::string_view kSpecial[] = {"none", "null", "Null", "NULL",
                                                  "auto", "true", "false"};
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (text.empty() || std::ranges::find(kSpecial, text) != std::end(kSpecial)) return false;
  if (!is_letter(text[0]) && text[0] != '/' && text[0] != '_') return false;
  return std::ranges::all_of(text, [&](char c) {
    return is_letter(c) || is_digit(c) || std::string_view("_./-+").find(c) != std::string::npos;
  });
}

}  // namespace

ParseResult parse_bool(const ConfigNode& node, bool& value) {
  if (!is_plain_scalar(node) || (node.text != "true" && node.text != "false"))
    return ParseResult::wrong_type;
  value = node.text == "true";
  return ParseResult::ok;
}

ParseResult parse_text(const ConfigNode& node, const SettingRules& rules, std::string& value) {
  if (node.kind != ConfigNode::Kind::scalar) return ParseResult::wrong_type;
  if (rules.required && node.text.empty()) return ParseResult::empty;
  value = node.text;
  return ParseResult::ok;
}

ParseResult parse_number(const ConfigNode& node, const Range& range, double& value) {
  const std::string_view text = without_plus(node.text);
  if (!is_plain_scalar(node) || !has_number_shape(text)) return ParseResult::wrong_type;
  double given = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), given);
  if (end != text.data() + text.size()) return ParseResult::wrong_type;
  if (error != std::errc() || !range.contains(given)) return ParseResult::out_of_range;
  value = given;
  return ParseResult::ok;
}

ParseResult parse_integer(const ConfigNode& node, const Range& range, std::int64_t& value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53: beyond it doubles skip integers
  const std::string_view text = without_plus(node.text);
  if (!is_plain_scalar(node) || !has_number_shape(text)) return ParseResult::wrong_type;
  std::int64_t given = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), given);
  if (end != text.data() + text.size()) {
    double number = 0;
    if (text.find_first_of("eE") == std::string_view::npos) return ParseResult::wrong_type;
    const ParseResult result = parse_number(node, {}, number);
    if (result != ParseResult::ok) return result;
    if (number != std::floor(number)) return ParseResult::wrong_type;
    if (std::abs(number) > kExact) return ParseResult::out_of_range;
    given = static_cast<std::int64_t>(number);
  } else if (error != std::errc()) {
    return ParseResult::out_of_range;
  }
  if (!range.contains(static_cast<double>(given))) return ParseResult::out_of_range;
  value = given;
  return ParseResult::ok;
}

std::string format_number(double value) {
  expect(std::isfinite(value), "a setting is not finite: use std::optional for 'none'");
  return fmt::format("{}", value);
}

std::string format_text(std::string_view text, std::string_view empty_word) {
  if (reads_as_text(text) && text != empty_word) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      quoted.append({'\\', c});
    else if (byte < 0x20 || byte == 0x7f)
      quoted += fmt::format("\\x{:02x}", byte);
    else
      quoted += c;
  }
  return quoted + "\"";
}

}  // namespace octavo
