#pragma once

#include <limits>
#include <string>
#include <string_view>

namespace octavo {

/// What a number must obey.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false, high_open = false;

  bool contains(double value) const {
    return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
  }
  /// Whether every number is allowed.
  bool unbounded() const;
  /// "between 0 and 1, ends excluded", "at least 0 and below 1", "above 0", ...
  std::string description() const;
  /// Numbers that both allow.
  Range operator&(const Range& other) const;
};

/// Everything that is said about a setting besides its name, value and meaning.
struct SettingRules {
  Range range{};
  std::string_view empty_word = "none";  ///< how an empty std::optional is spelled
  bool required = false;
  bool may_change = false;

  /// What both say.
  SettingRules operator&(const SettingRules& other) const;
};

/// What all of them say.
template <typename... Rules>
SettingRules merge_rules(const Rules&... rules) {
  return (SettingRules{} & ... & rules);
}

/// "section.name", or "name" at the top.
std::string join_key(std::string_view section, std::string_view name);

/// The words of rules, inherited by every visitor: v.setting(name, field, help, v.at_least(1),
/// v.below(10), v.may_change()).
struct RuleWords {
  static SettingRules at_least(double low) { return {.range = {.low = low}}; }
  static SettingRules above(double low) { return {.range = {.low = low, .low_open = true}}; }
  static SettingRules at_most(double high) { return {.range = {.high = high}}; }
  static SettingRules below(double high) { return {.range = {.high = high, .high_open = true}}; }
  /// Between low and high, ends included.
  static SettingRules closed(double low, double high) { return at_least(low) & at_most(high); }
  /// Between low and high, ends excluded.
  static SettingRules open(double low, double high) { return above(low) & below(high); }
  /// An empty std::optional is spelled `word` instead of "none". `word` must be a literal.
  static SettingRules empty_is(std::string_view word) { return {.empty_word = word}; }
  /// Must be given; a text or a list may not be empty either.
  static SettingRules required() { return {.required = true}; }
  /// May differ when a run is resumed; without it the setting is fixed for the life of a run. On a
  /// section or a list it holds for all inside.
  static SettingRules may_change() { return {.may_change = true}; }
};

}  // namespace octavo
