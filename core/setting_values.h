#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/config_tree.h"
#include "core/setting_rules.h"

/// The types a setting may have: how each is read from YAML, written back and described. Reading
/// what was written gives the same value, to the last bit.
namespace octavo {

/// Names of an enum's values, specialised beside each enum that is a setting:
///
///     template <>
///     struct EnumNames<NormPlace> {
///       static constexpr std::pair<NormPlace, std::string_view> values[] = {
///           {NormPlace::pre, "pre"}, {NormPlace::post, "post"}};
///     };
template <typename E>
struct EnumNames;

/// "pre" for NormPlace::pre.
template <typename E>
std::string_view enum_name(E value) {
  for (const auto& [known, name] : EnumNames<E>::values)
    if (known == value) return name;
  return "?";
}

enum class ParseResult { ok, wrong_type, out_of_range, empty };

// The scalars. parse_* leave the value alone unless they return ok.
ParseResult parse_bool(const ConfigNode& node, bool& value);
ParseResult parse_text(const ConfigNode& node, const SettingRules& rules, std::string& value);
ParseResult parse_number(const ConfigNode& node, const Range& range, double& value);
/// Decimal digits without leading zeros, or an exponent form that is exact ("1e5").
ParseResult parse_integer(const ConfigNode& node, const Range& range, std::int64_t& value);
/// The shortest decimal that reads back as the same double.
std::string format_number(double value);
/// Plain if it can't be taken for anything else, else in double quotes with escapes.
std::string format_text(std::string_view text, std::string_view empty_word);

template <typename T>
struct SettingValue;

template <>
struct SettingValue<bool> {
  static std::string type() { return "true or false"; }
  static ParseResult parse(const ConfigNode& node, const SettingRules&, bool& value) {
    return parse_bool(node, value);
  }
  static std::string format(bool value, const SettingRules&) { return value ? "true" : "false"; }
  static bool allowed(bool, const SettingRules&) { return true; }
};

template <>
struct SettingValue<double> {
  static std::string type() { return "a number"; }
  static ParseResult parse(const ConfigNode& node, const SettingRules& rules, double& value) {
    return parse_number(node, rules.range, value);
  }
  static std::string format(double value, const SettingRules&) { return format_number(value); }
  static bool allowed(double value, const SettingRules& rules) {
    return rules.range.contains(value);
  }
};

template <std::signed_integral T>
struct SettingValue<T> {
  static std::string type() { return "an integer"; }
  static ParseResult parse(const ConfigNode& node, const SettingRules& rules, T& value) {
    std::int64_t wide = 0;
    const ParseResult result = parse_integer(node, rules.range, wide);
    if (result != ParseResult::ok) return result;
    if (!std::in_range<T>(wide)) return ParseResult::out_of_range;
    value = static_cast<T>(wide);
    return ParseResult::ok;
  }
  static std::string format(T value, const SettingRules&) { return std::to_string(value); }
  static bool allowed(T value, const SettingRules& rules) {
    return rules.range.contains(static_cast<double>(value));
  }
};

template <>
struct SettingValue<std::string> {
  static std::string type() { return "a text"; }
  static ParseResult parse(const ConfigNode& node, const SettingRules& rules, std::string& value) {
    return parse_text(node, rules, value);
  }
  static std::string format(const std::string& value, const SettingRules& rules) {
    return format_text(value, rules.empty_word);
  }
  static bool allowed(const std::string&, const SettingRules&) { return true; }
};

template <typename T>
requires std::is_enum_v<T>
struct SettingValue<T> {
  static std::string type() {
    std::string names;
    for (const auto& [value, name] : EnumNames<T>::values)
      names.append(names.empty() ? "one of " : ", ").append(name);
    return names;
  }
  static ParseResult parse(const ConfigNode& node, const SettingRules&, T& value) {
    for (const auto& [known, name] : EnumNames<T>::values) {
      if (node.kind != ConfigNode::Kind::scalar || node.text != name) continue;
      value = known;
      return ParseResult::ok;
    }
    return ParseResult::wrong_type;
  }
  static std::string format(T value, const SettingRules&) { return std::string(enum_name(value)); }
  static bool allowed(T, const SettingRules&) { return true; }
};

template <typename T>
struct SettingValue<std::optional<T>> {
  static std::string type() { return SettingValue<T>::type(); }
  static ParseResult parse(const ConfigNode& node, const SettingRules& rules,
                           std::optional<T>& value) {
    if (node.kind == ConfigNode::Kind::scalar && !node.quoted && node.text == rules.empty_word) {
      value.reset();
      return ParseResult::ok;
    }
    T given{};
    const ParseResult result = SettingValue<T>::parse(node, rules, given);
    if (result == ParseResult::ok) value = std::move(given);
    return result;
  }
  static std::string format(const std::optional<T>& value, const SettingRules& rules) {
    return value ? SettingValue<T>::format(*value, rules) : std::string(rules.empty_word);
  }
  static bool allowed(const std::optional<T>& value, const SettingRules& rules) {
    return !value || SettingValue<T>::allowed(*value, rules);
  }
};

/// A list of scalars: every element obeys the rules.
template <typename T>
struct SettingValue<std::vector<T>> {
  static std::string type() { return "a list, [a, b, ...], each " + SettingValue<T>::type(); }
  static ParseResult parse(const ConfigNode& node, const SettingRules& rules,
                           std::vector<T>& value) {
    if (node.kind != ConfigNode::Kind::list) return ParseResult::wrong_type;
    std::vector<T> given;
    for (const ConfigNode& child : node.children) {
      T element{};
      const ParseResult result = SettingValue<T>::parse(child, rules, element);
      if (result != ParseResult::ok) return result;
      given.push_back(std::move(element));
    }
    if (rules.required && given.empty()) return ParseResult::wrong_type;
    value = std::move(given);
    return ParseResult::ok;
  }
  static std::string format(const std::vector<T>& value, const SettingRules& rules) {
    std::string list = "[";
    for (const T& element : value) {
      if (list.size() > 1) list += ", ";
      list += SettingValue<T>::format(element, rules);
    }
    return list + "]";
  }
  static bool allowed(const std::vector<T>& value, const SettingRules& rules) {
    for (const T& element : value)
      if (!SettingValue<T>::allowed(element, rules)) return false;
    return true;
  }
};

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <typename T>
inline constexpr bool kIsStructList = false;
template <typename T>
requires std::is_class_v<T> &&
    (!std::is_same_v<T, std::string>)inline constexpr bool kIsStructList<std::vector<T>> = true;

/// What is accepted: "a number, between 0 and 1, ends excluded, or none".
template <typename T>
std::string accepted_values(const SettingRules& rules) {
  std::string text = SettingValue<T>::type();
  if (!rules.range.unbounded()) text += ", " + rules.range.description();
  if (kIsOptional<T>) text.append(", or ").append(rules.empty_word);
  return text;
}

}  // namespace octavo
