#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "configs/experiment.h"
#include "core/error.h"
#include "core/output.h"
#include "core/token_batch.h"
#include "data/prepared.h"
#include "launch/commands.h"
#include "launch/rank_threads.h"
#include "trainer/memory_plan.h"
#include "trainer/planned_translation.h"
#include "trainer/progress_text.h"

namespace octavo {
namespace {

/// Tokens of a side where there is no data yet to count: a usual sentence of news in subwords.
constexpr std::int64_t kUsualLength = 27;
/// A batch that is large enough for its length not to matter.
constexpr std::int64_t kBatchSentences = 64;

struct PlanOptions {
  std::string config;
  std::vector<std::string> overrides;
  int ranks = 1;
  int threads = 0;
};

/// What is known of the text.
struct TextFacts {
  std::int64_t source_vocabulary, target_vocabulary;
  bool has_dev;
  std::string origin;  ///< where this is known from
  // Of an epoch, weights counted, EOS counted; zeros before the text is prepared:
  double pairs = 0, source_tokens = 0, target_tokens = 0;

  std::int64_t length(double tokens) const {
    return pairs > 0 ? std::max<std::int64_t>(1, std::llround(tokens / pairs)) : kUsualLength;
  }
};

TextFacts facts_of(const PreparedData& data, const DataConfig& config) {
  TextFacts facts{.source_vocabulary = data.subwords.source->vocabulary().size(),
                  .target_vocabulary = data.subwords.target->vocabulary().size(),
                  .has_dev = data.dev.has_value(),
                  .origin = "as prepared in " + config.prepared};
  for (std::size_t i = 0; i < data.train.size(); ++i) {
    const Corpus& corpus = data.train[i];
    const double weight = config.train[i].weight;
    const auto tokens = [&](std::string_view column) {
      return weight *
             static_cast<double>(corpus.elements(corpus.column(column)) + corpus.rows());  // EOS
    };
    facts.pairs += weight * static_cast<double>(corpus.rows());
    facts.source_tokens += tokens("source");
    facts.target_tokens += tokens("target");
  }
  return facts;
}

/// Before 'octavo prepare' has run: sizes as they are wished for.
TextFacts facts_of(const DataConfig& config, const std::string& reason) {
  const SubwordConfig& s = config.subwords;
  const auto size = [&](const std::optional<std::string>& model) {
    return model ? std::int64_t{Subwords::load(*model).vocabulary().size()} : s.vocabulary_size;
  };
  return {.source_vocabulary = size(s.joint ? s.model : s.source_model),
          .target_vocabulary = size(s.joint ? s.model : s.target_model),
          .has_dev = config.dev.given(),
          .origin = "not prepared: " + reason};
}

TextFacts find_facts(const DataConfig& config) {
  std::string reason;
  try {
    return facts_of(open_prepared(config), config);
  } catch (const UserError& error) {
    reason = error.what();
  }
  return facts_of(config, reason);
}

/// "1.23e+18", or plainly where that is shorter: "950".
std::string number(double value) {
  return value < 1e7 ? with_commas(std::llround(value)) : fmt::format("{:.2e}", value);
}

std::string gigabytes(std::int64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

std::string memory_text(const MemoryPlan& plan, std::int64_t budget) {
  const auto line = [](std::string_view part, std::int64_t bytes) {
    return fmt::format("  {:<12} {:>10}\n", part, gigabytes(bytes));
  };
  return "memory of each rank\n" + line("parameters", plan.parameters) +
         line("optimiser", plan.optimizer) + line("activations", plan.activations) +
         line("scratch", plan.scratch) + line("validation", plan.validation) +
         line("together", plan.total()) + line("may be used", budget) +
         fmt::format("micro-batch   up to {} target tokens on a rank\n",
                     with_commas(plan.max_tokens));
}

/// How long training is, as far as the settings and the text tell.
std::string length_text(const TrainerConfig& config, const TextFacts& facts,
                        double flops_per_update) {
  std::string text;
  std::optional<double> epoch;
  if (facts.pairs > 0) {
    epoch = std::max(1.0, facts.target_tokens / static_cast<double>(config.tokens_per_update));
    text += fmt::format("epoch         {} pairs, {} target tokens: about {} updates\n",
                        number(facts.pairs), number(facts.target_tokens), number(*epoch));
  }
  std::optional<double> updates;
  if (config.max_updates) updates = static_cast<double>(*config.max_updates);
  if (config.max_epochs && epoch) {
    const double all = *epoch * static_cast<double>(*config.max_epochs);
    updates = std::min(updates.value_or(all), all);
  }
  if (updates) {
    text += fmt::format("training      {} updates", number(*updates));
    if (epoch) text += fmt::format(" = {:.1f} epochs", *updates / *epoch);
    text += fmt::format(", {:.2e} FLOP", *updates * flops_per_update);
    text += config.max_minutes ? fmt::format(", or {} minutes\n", *config.max_minutes) : "\n";
  } else if (config.max_minutes) {
    text += fmt::format("training      {} minutes\n", *config.max_minutes);
  } else {
    text += "training      without an end, until it is stopped or validation no longer gains\n";
  }
  return text;
}

std::string plan_text(const PlanOptions& options) {
  const Experiment experiment = read_experiment(options.config, options.overrides);
  const TrainerConfig& trainer = experiment.trainer;
  const int threads = threads_per_rank(options.threads, options.ranks);
  const TextFacts facts = find_facts(experiment.data);
  const PlannedTranslation work({.model = experiment.model,
                                 .source_vocabulary = facts.source_vocabulary,
                                 .target_vocabulary = facts.target_vocabulary,
                                 .max_length = experiment.data.max_length,
                                 .trainer = trainer,
                                 .search = experiment.translate,
                                 .validates = facts.has_dev,
                                 .threads = threads});
  const std::int64_t source = facts.length(facts.source_tokens);
  const std::int64_t target = facts.length(facts.target_tokens);
  const double flops_per_token =
      static_cast<double>(work.flops(planned_batch(kBatchSentences, source, target))) /
      static_cast<double>(kBatchSentences * target);
  const double flops_per_update = flops_per_token * static_cast<double>(trainer.tokens_per_update);
  std::string text =
      fmt::format("experiment    {}, on {} of {} of this host\ntext          {}\n", options.config,
                  counted(options.ranks, "rank"), counted(threads, "thread"), facts.origin);
  text += fmt::format("model         {} parameters; vocabularies of {} and {}\n",
                      with_commas(work.parameter_table().count()),
                      with_commas(facts.source_vocabulary), with_commas(facts.target_vocabulary));
  const std::int64_t budget = memory_budget(trainer, options.ranks);
  text += memory_text(choose_plan(work, trainer, threads, budget), budget);
  text += fmt::format(
      "update        {} target tokens over all ranks, {:.1f} GFLOP; {:.1f} MFLOP a token at {} "
      "source and {} target tokens a pair\n",
      with_commas(trainer.tokens_per_update), flops_per_update / 1e9, flops_per_token / 1e6, source,
      target);
  return text + length_text(trainer, facts, flops_per_update);
}

}  // namespace

Command plan_command() {
  auto options = std::make_shared<PlanOptions>();
  Command c;
  c.name = "plan";
  c.summary = "memory, FLOPs and updates of a training before anything is run";
  c.usage = "CONFIG [options]";
  c.options.add_options()  //
      ("config", po::value(&options->config)->required()->value_name("CONFIG"),
       "experiment, e.g. configs/wmt14-en-de-base.yaml; its text need not be there yet")  //
      ("ranks", po::value(&options->ranks)->default_value(1)->value_name("N"),
       "ranks that share this host")  //
      ("set", po::value(&options->overrides)->composing()->value_name("KEY=VALUE"),
       "overrides a setting; may be repeated")  //
      ("threads", po::value(&options->threads)->default_value(0)->value_name("N"),
       "threads of each rank; 0: OMP_NUM_THREADS, else its share of the processors");
  c.positional.add("config", 1);
  c.run = [options](const po::variables_map&) {
    if (options->ranks < 1) {
      throw UserError(fmt::format("--ranks is {}; it must be at least 1", options->ranks));
    }
    StandardOutput out;
    out.write(plan_text(*options));
    out.flush();
    return 0;
  };
  return c;
}

}  // namespace octavo
