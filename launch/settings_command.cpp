#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "configs/experiment.h"
#include "core/error.h"
#include "core/output.h"
#include "core/settings.h"
#include "core/suggest.h"
#include "launch/commands.h"

namespace octavo {
namespace {

/// Whether `key` is `name` or stands below it.
bool is_within(const std::string& key, const std::string& name) {
  return key.starts_with(name) &&
         (key.size() == name.size() || key[name.size()] == '.' || key[name.size()] == '[');
}

/// Everything that is_within() accepts: sections, lists and settings.
std::vector<std::string> names_of(std::span<const SettingHelp> rows) {
  std::vector<std::string> names;
  for (const SettingHelp& row : rows) {
    for (std::size_t end = 0; end != std::string::npos;) {
      end = row.key.find_first_of(".[", end + 1);
      names.push_back(row.key.substr(0, end));
    }
  }
  return names;
}

int print_settings(const std::string& name) {
  std::vector<SettingHelp> rows = list_settings<Experiment>();
  if (!name.empty()) {
    const std::vector<std::string> names = names_of(rows);
    std::erase_if(rows, [&](const SettingHelp& row) { return !is_within(row.key, name); });
    if (rows.empty())
      throw UserError(fmt::format("no setting or section '{}'{}", name, did_you_mean(name, names)));
  }
  StandardOutput out;
  out.write(format_help(rows));
  out.flush();
  return 0;
}

}  // namespace

Command settings_command() {
  auto name = std::make_shared<std::string>();
  Command c;
  c.name = "settings";
  c.summary = "list every setting with its default, its range and its meaning";
  c.usage = "[NAME]";
  c.options.add_options()("name", po::value(name.get())->value_name("NAME"),
                          "only this section or setting, e.g. model");
  c.positional.add("name", 1);
  c.run = [name](const po::variables_map&) { return print_settings(*name); };
  return c;
}

}  // namespace octavo
