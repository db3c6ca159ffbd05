#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/setting_values.h"
#include "core/suggest.h"

namespace octavo {

/// The value of an option that takes one of an enum's names (EnumNames).
/// @param option  as the user types it: "--preset".
/// @throws UserError  no value has that name; says which there are.
template <typename E>
E choice(const std::string& option, const std::string& given) {
  std::vector<std::string> names;
  for (const auto& [value, name] : EnumNames<E>::values) {
    if (name == given) return value;
    names.emplace_back(name);
  }
  throw UserError(fmt::format("{} is '{}'; it must be one of {}{}", option, given,
                              fmt::join(names, ", "), did_you_mean(given, names)));
}

}  // namespace octavo
