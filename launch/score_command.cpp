#include <spdlog/spdlog.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "core/error.h"
#include "core/file.h"
#include "core/output.h"
#include "launch/commands.h"
#include "launch/load_model.h"
#include "launch/setting_options.h"
#include "trainer/progress_text.h"
#include "translate/attention.h"
#include "translate/score_texts.h"
#include "translate/scorer.h"

namespace octavo {
namespace {

struct ScoreSettings {
  int batch_tokens = 4096;
  ModelUseConfig use;

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("batch_tokens", batch_tokens,
              "a batch holds at most this many sentences x longest side; bounds memory",
              v.closed(1, 1 << 24));
    use.describe(v);
  }
};

struct ScorePaths {
  std::string model, source, target;
  std::string attention;  ///< empty: not wanted
};

int score(const ScorePaths& paths, const ScoreSettings& settings) {
  if (paths.source == "-" && paths.target == "-") {
    throw UserError("--source and --target can't both be standard input");
  }
  const int threads = settings.use.resolved_threads();
  const LoadedModel loaded = load_model(paths.model, settings.use.precision, threads);
  const PairScorer scorer(*loaded.model, loaded.subwords.target->vocabulary().bos(),
                          settings.batch_tokens);
  const AttentionReader reader(*loaded.model, loaded.subwords.target->vocabulary().bos());
  const DType compute = loaded.parameters->compute_type();
  WorkMemory memory = scorer.plan(compute, threads);
  std::optional<AtomicFile> attention;
  if (!paths.attention.empty()) {
    attention.emplace(paths.attention);
    memory = memory | reader.plan(compute, threads);
  }
  Context ctx(Device::cpu, threads, memory.scratch);
  Arena activations(memory.activations);
  const Pass pass{
      .ctx = ctx, .parameters = *loaded.parameters, .memory = activations, .random = {}};
  StandardOutput output;
  const ScoreCounts counts =
      score_texts(paths.source, paths.target,
                  {.source = *loaded.subwords.source,
                   .target = *loaded.subwords.target,
                   .max_length = scorer.max_length(),
                   .score =
                       [&](std::span<const IdPair> pairs) {
                         for (std::size_t i = 0; attention && i < pairs.size(); ++i) {
                           attention->write(attention_json(reader.read(pass, pairs[i]), pairs[i],
                                                           loaded.subwords.source->vocabulary(),
                                                           loaded.subwords.target->vocabulary()) +
                                            "\n");
                         }
                         return scorer.score(pass, pairs);
                       }},
                  [&](std::string_view lines) {
                    output.write(lines);
                    output.flush();
                  });
  if (attention) attention->commit();
  if (counts.pairs > 0) {
    const double per_token = counts.log_probability / static_cast<double>(counts.target_tokens);
    spdlog::info(
        "[translate] {}, {} (EOS counted): log-probability {:.4f} per token, "
        "perplexity {:.4f}",
        counted(counts.pairs, "pair"), counted(counts.target_tokens, "target token"), per_token,
        std::exp(-per_token));
  }
  return 0;
}

}  // namespace

Command score_command() {
  auto paths = std::make_shared<ScorePaths>();
  Command c;
  c.name = "score";
  c.summary = "log-probability of each given translation, one number a line";
  c.usage = "RUN|CHECKPOINT --source F --target F [options]";
  c.options.add_options()("model",
                          po::value(&paths->model)->required()->value_name("RUN|CHECKPOINT"),
                          "a run (its best checkpoint, else its newest) or one checkpoint")(
      "source", po::value(&paths->source)->required()->value_name("F"),
      "text that was translated, one sentence per line; - is standard input")(
      "target", po::value(&paths->target)->required()->value_name("F"),
      "its translation, line by line; natural logarithms are added over its tokens and EOS")(
      "attention", po::value(&paths->attention)->value_name("F"),
      "also write the decoder's attention to the source, a line of JSON for each pair "
      "(docs/formats/attention.md)");
  c.positional.add("model", 1);
  add_setting_options<ScoreSettings>(c.options);
  c.run = [paths](const po::variables_map& given) {
    return score(*paths, settings_from_options<ScoreSettings>(given));
  };
  return c;
}

}  // namespace octavo
