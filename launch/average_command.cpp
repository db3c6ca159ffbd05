#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "launch/commands.h"
#include "trainer/averaging.h"
#include "trainer/run_folder.h"

namespace octavo {
namespace {

struct AverageSettings {
  std::vector<std::string> paths;
  std::string output;
  std::int64_t last = 0;  ///< 0: the paths are checkpoints
};

int average(const AverageSettings& settings, bool of_run) {
  namespace fs = std::filesystem;
  std::vector<fs::path> checkpoints(settings.paths.begin(), settings.paths.end());
  if (of_run) {
    if (settings.last < 1) throw UserError("--last must be at least 1");
    if (checkpoints.size() != 1)
      throw UserError("with --last give one run; without it, the checkpoints themselves");
    checkpoints = last_checkpoints(checkpoints.front(), settings.last);
  }
  for (const auto& path : checkpoints) {
    if (of_run || !fs::is_directory(checkpoints_folder(path))) continue;
    throw UserError(fmt::format(
        "{} is a run: say how many of its checkpoints with --last N, or name them", path.string()));
  }
  average_checkpoints(checkpoints, settings.output);
  return 0;
}

}  // namespace

Command average_command() {
  auto s = std::make_shared<AverageSettings>();
  Command c;
  c.name = "average";
  c.summary = "a checkpoint whose weights are the means of several checkpoints";
  c.usage = "RUN --last N --output DIR, or: octavo average --output DIR CHECKPOINT...";
  auto add = c.options.add_options();
  add("checkpoint", po::value(&s->paths)->required()->value_name("RUN|CHECKPOINT..."),
      "a run, with --last; else the checkpoints to average, in this order");
  add("last", po::value(&s->last)->value_name("N"), "average the newest N checkpoints of a run");
  add("output", po::value(&s->output)->required()->value_name("DIR"),
      "the checkpoint to make; must not be there yet");
  c.positional.add("checkpoint", -1);
  c.run = [s](const po::variables_map& given) { return average(*s, given.count("last") > 0); };
  return c;
}

}  // namespace octavo
