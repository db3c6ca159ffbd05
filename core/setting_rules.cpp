#include "core/setting_rules.h"

#include <fmt/format.h>

#include <cmath>

namespace octavo {

bool Range::unbounded() const {
  return std::isinf(low) && std::isinf(high);
}

std::string Range::description() const {
  if (std::isinf(high)) return fmt::format("{} {}", low_open ? "above" : "at least", low);
  if (std::isinf(low)) return fmt::format("{} {}", high_open ? "below" : "at most", high);
  if (low_open == high_open)
    return fmt::format("between {} and {}, ends {}", low, high, low_open ? "excluded" : "included");
  return fmt::format("{} {} and {} {}", low_open ? "above" : "at least", low,
                     high_open ? "below" : "at most", high);
}

Range Range::operator&(const Range& other) const {
  Range both = *this;
  if (other.low > low || (other.low == low && other.low_open))
    both.low = other.low, both.low_open = other.low_open;
  if (other.high < high || (other.high == high && other.high_open))
    both.high = other.high, both.high_open = other.high_open;
  return both;
}

SettingRules SettingRules::operator&(const SettingRules& other) const {
  return {
      .range = range & other.range,
      .empty_word = other.empty_word == SettingRules{}.empty_word ? empty_word : other.empty_word,
      .required = required || other.required,
      .may_change = may_change || other.may_change};
}

std::string join_key(std::string_view section, std::string_view name) {
  return section.empty() ? std::string(name) : fmt::format("{}.{}", section, name);
}

}  // namespace octavo
