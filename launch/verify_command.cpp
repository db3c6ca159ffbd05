#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "configs/experiment.h"
#include "core/error.h"
#include "core/output.h"
#include "launch/commands.h"
#include "launch/recipe_now.h"
#include "trainer/progress_text.h"
#include "trainer/recipe.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

struct VerifyOptions {
  std::string run, config;
  std::vector<std::string> overrides;
};

fs::path lock_of(const fs::path& run) {
  fs::path file = fs::is_directory(run) ? run / kRecipeFile : run;
  if (!fs::exists(file)) {
    throw UserError(
        fmt::format("{} has no {}: is it the folder of a run? Training writes it when it starts.",
                    run.string(), kRecipeFile));
  }
  return file;
}

/// The settings that are compared with the recipe's: those of the configuration given, else the
/// run's own.
Experiment settings_here(const VerifyOptions& options) {
  if (!options.config.empty()) return read_experiment(options.config, options.overrides);
  const fs::path resolved = fs::path(options.run) / "resolved.yaml";
  if (!fs::exists(resolved)) {
    throw UserError(fmt::format(
        "{} is no run's folder with its resolved.yaml: name the settings to compare with, "
        "--config CONFIG",
        options.run));
  }
  return read_experiment(resolved, options.overrides);
}

void remove_places(Facts& settings) {
  std::erase_if(settings, [](const auto& setting) { return names_a_place(setting.first); });
}

/// One section: a line if all is the same, else what differs. @returns how many things.
std::size_t compare(std::string_view section, const Facts& then, const Facts& now,
                    std::string& text) {
  const std::vector<RecipeDifference> list = differences(then, now);
  if (list.empty()) {
    text += fmt::format("{}: the same ({})\n", section, then.size());
    return 0;
  }
  text +=
      fmt::format("{}: {} of {} differ\n", section, list.size(), std::max(then.size(), now.size()));
  for (const RecipeDifference& d : list)
    text += fmt::format("  {}\n    recipe  {}\n    here    {}\n", d.name, d.then, d.now);
  return list.size();
}

std::string starts_text(const fs::path& file, const std::vector<RecipeStart>& starts) {
  std::string text = fmt::format("{}: {}\n", file.string(),
                                 counted(static_cast<std::int64_t>(starts.size()), "start"));
  for (std::size_t i = 1; i < starts.size(); ++i) {
    text += fmt::format("  went on after update {} with", with_commas(starts[i].update));
    const Recipe &before = starts[i - 1].recipe, &after = starts[i].recipe;
    for (const auto& [then, now] : {std::pair(&before.program, &after.program),
                                    {&before.machine, &after.machine},
                                    {&before.settings, &after.settings},
                                    {&before.data, &after.data}})
      for (const RecipeDifference& d : differences(*then, *now))
        text += fmt::format(" {} = {} ({} before);", d.name, d.now, d.then);
    text.back() = '\n';
  }
  return text;
}

int verify(const VerifyOptions& options) {
  const fs::path file = lock_of(options.run);
  const std::vector<RecipeStart> starts = read_recipe_lock(file);
  if (starts.empty()) throw UserError(file.string() + ": it tells of no start");
  Recipe then = starts.back().recipe;
  const Experiment experiment = settings_here(options);
  Recipe now = recipe_now(experiment, {});
  now.data = facts_here(experiment.data);
  remove_places(then.settings);
  remove_places(now.settings);

  std::string text = starts_text(file, starts);
  const std::size_t found = compare("program", then.program, now.program, text) +
                            compare("settings", then.settings, now.settings, text) +
                            compare("data", then.data, now.data, text);
  StandardOutput output;
  output.write(text);
  output.flush();
  return found == 0 ? 0 : 1;
}

}  // namespace

Command verify_command() {
  auto options = std::make_shared<VerifyOptions>();
  Command c;
  c.name = "verify";
  c.summary = "what differs here from what a run was made with (its recipe.lock)";
  c.usage = "RUN|RECIPE [options]";
  c.options.add_options()  //
      ("run", po::value(&options->run)->required()->value_name("RUN"),
       "a run's folder, or its recipe.lock alone")  //
      ("config", po::value(&options->config)->value_name("CONFIG"),
       "settings to compare with; default: the run's resolved.yaml")  //
      ("set", po::value(&options->overrides)->composing()->value_name("KEY=VALUE"),
       "overrides a setting, e.g. the place of the text here; may be repeated");
  c.positional.add("run", 1);
  c.more_help = [] {
    return std::string(
        "Reads the text and the prepared folder that the settings name, and compares hashes and "
        "counts.\nExit code: 0 if nothing differs, 1 if something does.\n");
  };
  c.run = [options](const po::variables_map&) { return verify(*options); };
  return c;
}

}  // namespace octavo
