#pragma once

#include <boost/program_options.hpp>
#include <span>

#include "core/settings.h"
#include "launch/command.h"

namespace octavo {

/// Declares an option for each setting of a flat struct: `max_length` becomes --max-length. Ranges,
/// defaults and meanings are those of its describe().
void add_options(po::options_description& options, std::span<const SettingHelp> settings);

/// What was given of them, as if it stood in a settings file.
ConfigNode given_options(const po::variables_map& given, std::span<const SettingHelp> settings);

template <typename Settings>
void add_setting_options(po::options_description& options) {
  add_options(options, list_settings<Settings>());
}

/// @param settings  what holds where nothing was given.
/// @throws UserError  a value is none, or out of range: names the option.
template <typename Settings>
Settings settings_from_options(const po::variables_map& given, Settings settings = {}) {
  read_settings(settings, given_options(given, list_settings<Settings>()));
  return settings;
}

}  // namespace octavo
