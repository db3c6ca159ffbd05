#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/group.h"
#include "comm/signals.h"
#include "configs/experiment.h"
#include "core/folder_lock.h"
#include "core/log.h"
#include "core/output.h"
#include "launch/commands.h"
#include "launch/rank_threads.h"
#include "launch/recipe_now.h"
#include "trainer/checkpoint.h"
#include "trainer/profile_text.h"
#include "trainer/run_folder.h"
#include "trainer/run_observer.h"
#include "trainer/trainer.h"
#include "trainer/translation_task.h"

namespace octavo {

namespace {

namespace fs = std::filesystem;

/// Seconds that a training which was killed may take to go.
constexpr double kPatience = 5;

struct TrainOptions {
  std::string config;
  std::vector<std::string> overrides;
  std::string progress;
  int threads = 0;
  bool profile = false;
};

int count_ranks_on_host(Group& group) {
  // The rank with local number 0 stands for its host; with equal hosts this is exact.
  const std::int64_t hosts = group.sum(std::int64_t{group.local_rank() == 0 ? 1 : 0});
  return static_cast<int>((group.size() + hosts - 1) / hosts);
}

RunFiles run_files(const Experiment& experiment, const PreparedData& data) {
  RunFiles files;
  files.texts["settings.yaml"] = resolved_yaml(experiment);
  for (const std::string& name : subword_files(experiment.data.subwords.joint))
    files.texts[name] = read_file(fs::path(experiment.data.prepared) / name);
  files.hashes["vocabulary.source"] = data.subwords.source->vocabulary().hash();
  files.hashes["vocabulary.target"] = data.subwords.target->vocabulary().hash();
  for (std::size_t i = 0; i < data.train.size(); ++i) {
    files.hashes[fmt::format("data.train[{}]", i)] = data.train[i].content_hash();
  }
  return files;
}

/// The settings of the newest checkpoint must agree, and the run's folder gets a copy of ours.
/// @returns what keeps the folder ours.
std::unique_ptr<FolderLock> open_run(const Experiment& experiment) {
  const fs::path run = experiment.trainer.output;
  std::error_code failed;
  fs::create_directories(run, failed);
  if (failed) {
    throw UserError(system_reason("trainer.output: cannot make " + run.string(), failed.value()));
  }
  auto lock = std::make_unique<FolderLock>(run, "trainer.output", kPatience);
  const std::vector<StepCheckpoint> there = list_checkpoints(run);
  if (!there.empty()) {
    const fs::path& newest = there.back().path;
    check_resumable(experiment, Checkpoint(newest).text(kSettingsFile), newest);
  }
  write_file(run / "resolved.yaml", resolved_yaml(experiment));
  return lock;
}

/// What this start is made from, for who wants to make it again.
void lock_recipe(const Experiment& experiment, const RankCounts& counts) {
  const fs::path run = experiment.trainer.output;
  const std::vector<StepCheckpoint> there = list_checkpoints(run);
  RecipeStart start{.update = there.empty() ? 0 : there.back().update,
                    .recipe = recipe_now(experiment, counts)};
  start.recipe.data = prepared_facts(experiment.data);
  note_start(run, start);
}

void train_on(Group& group, const TrainOptions& options, const StopSignals& signals) {
  const Experiment experiment = read_experiment(options.config, options.overrides);
  const int ranks_on_host = count_ranks_on_host(group);
  const int threads = threads_per_rank(options.threads, ranks_on_host);
  // Before the time limit of the settings counts: it may wait for a training that was killed.
  std::unique_ptr<FolderLock> lock;
  if (group.rank() == 0) lock = open_run(experiment);
  group.barrier();
  group.set_time_limit(experiment.comm.timeout_seconds);
  TranslationTask task({.data = experiment.data,
                        .model = experiment.model,
                        .trainer = experiment.trainer,
                        .search = experiment.translate,
                        .bleu = experiment.bleu,
                        .threads = threads},
                       group);
  if (group.rank() == 0) lock_recipe(experiment, {.ranks = group.size(), .threads = threads});
  RunObserver observer(
      {.run = experiment.trainer.output,
       .style = options.progress == "live" ? ProgressStyle::live : ProgressStyle::plain,
       .report_every = experiment.trainer.report_every,
       .max_updates = experiment.trainer.max_updates,
       .max_minutes = experiment.trainer.max_minutes,
       .ranks = group.size(),
       .threads = threads});
  Trainer trainer({.config = experiment.trainer,
                   .bucket_bytes = experiment.comm.bucket_bytes(),
                   .model_width = experiment.model.width,
                   .files = run_files(experiment, task.data()),
                   .threads = threads,
                   .ranks_on_host = ranks_on_host},
                  task, group, signals, observer);
  TrainingEnd end = TrainingEnd::finished;
  // Here, so that an exception can't take gradients from under peers that still add them up.
  run_together(group, [&] { end = trainer.run(); });
  if (group.rank() != 0) return;
  observer.ended(end, trainer.state());
  if (options.profile) {
    StandardOutput out;
    out.write(profile_text(trainer.profile(), trainer.times(), trainer.limits()));
    out.flush();
  }
}

int train(const TrainOptions& options, const std::function<std::unique_ptr<Group>()>& join) {
  StopSignals signals;
  const std::unique_ptr<Group> group = join();
  set_up_log(group->rank());
  signals.arm(*group);
  run_together(*group, [&] { train_on(*group, options, signals); });
  return 0;
}

}  // namespace

Command train_command(std::function<std::unique_ptr<Group>()> join) {
  auto options = std::make_shared<TrainOptions>();
  Command c;
  c.name = "train";
  c.summary = "train a model; launch/train.sh starts it on many ranks";
  c.usage = "CONFIG [options]";
  c.options.add_options()  //
      ("config", po::value(&options->config)->required()->value_name("CONFIG"),
       "experiment, e.g. configs/quickstart-en-de.yaml")  //
      ("set", po::value(&options->overrides)->composing()->value_name("KEY=VALUE"),
       "overrides a setting, e.g. trainer.max_updates=1000; may be repeated")  //
      ("progress", po::value(&options->progress)->default_value("auto")->value_name("HOW"),
       "live: one line that is redrawn; plain: lines; auto: live on a terminal")  //
      ("threads", po::value(&options->threads)->default_value(0)->value_name("N"),
       "threads of each rank; 0: OMP_NUM_THREADS, else its share of the processors")  //
      ("profile", po::bool_switch(&options->profile),
       "at the end, where the time went: a table of ops beside the machine's limits");
  c.positional.add("config", 1);
  c.more_help = [] { return format_help(list_settings<Experiment>()); };
  c.run = [options, join = std::move(join)](const po::variables_map&) {
    if (options->progress == "auto") options->progress = isatty(2) != 0 ? "live" : "plain";
    if (options->progress != "live" && options->progress != "plain") {
      throw UserError(
          fmt::format("--progress is '{}'; it must be live, plain or auto", options->progress));
    }
    return train(*options, join);
  };
  return c;
}

}  // namespace octavo
