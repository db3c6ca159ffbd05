#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/output.h"
#include "launch/commands.h"
#include "launch/load_model.h"
#include "launch/rank_threads.h"
#include "launch/setting_options.h"
#include "trainer/progress_text.h"
#include "translate/batch_translator.h"
#include "translate/stream.h"
#include "translate/translator.h"
#include "translate/workers.h"

namespace octavo {
namespace {

/// What a translation computes in. int8: products of weights and what they are multiplied with,
/// rounded to eight bits; all else in float32.
enum class Arithmetic : unsigned char { float32, bf16, int8, float64 };

Precision compute_precision(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::bf16:
      return Precision::bf16;
    case Arithmetic::float64:
      return Precision::float64;
    case Arithmetic::float32:
    case Arithmetic::int8:
      break;
  }
  return Precision::float32;
}

}  // namespace

template <>
struct EnumNames<Arithmetic> {
  static constexpr std::array<std::pair<Arithmetic, std::string_view>, 4> values{
      {{Arithmetic::float32, "float32"},
       {Arithmetic::bf16, "bf16"},
       {Arithmetic::int8, "int8"},
       {Arithmetic::float64, "float64"}}};
};

namespace {

struct TranslateSettings {
  SearchConfig search;
  std::optional<int> nbest;
  LongLines long_lines = LongLines::split;
  std::optional<int> max_source;
  std::optional<int> threads;
  Arithmetic precision = Arithmetic::float32;

  template <typename Visitor>
  void describe(Visitor& v) {
    search.describe(v);
    v.setting("nbest", nbest,
              "print so many translations of each line, as 'LINE ||| TEXT ||| SCORE', lines "
              "counted from 0",
              v.closed(1, 1000));
    v.setting("long_lines", long_lines,
              "split a line of too many tokens and translate its parts apart, or refuse it");
    v.setting("max_source", max_source, "tokens of the longest source line, EOS counted",
              v.at_least(1), v.empty_is("model"));
    v.setting("threads", threads, "processors to use, each for batches of its own",
              v.closed(1, 1024), v.empty_is("all"));
    v.setting("precision", precision,
              "of products: float32, bf16 where the processor can, or int8");
  }
};

void report(const Translator::Counts& counts, double seconds) {
  const auto rate = [&](std::int64_t n) {
    return seconds > 0 ? static_cast<double>(n) / seconds : 0.0;
  };
  spdlog::info(
      "[translate] {} in {:.1f} s: {:.1f} lines/s, {:.0f} source tokens/s, {:.0f} target "
      "tokens/s",
      counted(counts.lines, "line"), seconds, rate(counts.lines), rate(counts.source_tokens),
      rate(counts.target_tokens));
  if (counts.split > 0) {
    spdlog::info("[translate] {} had too many tokens: split", counted(counts.split, "line"));
  }
  if (counts.ill_formed > 0) {
    spdlog::warn("[translate] {} had ill-formed UTF-8", counted(counts.ill_formed, "line"));
  }
  if (counts.unfinished > 0) {
    spdlog::info("[translate] {} cut off at the length limit",
                 counted(counts.unfinished, "translation"));
  }
}

int translate(const std::string& path, const TranslateSettings& settings) {
  const SearchRules rules = search_rules(settings.search, settings.nbest.value_or(1));
  const int threads = threads_per_rank(settings.threads.value_or(0), 1);
  const LoadedModel loaded = load_packed_model(
      path, compute_precision(settings.precision),
      settings.precision == Arithmetic::int8 ? WeightFormat::int8 : WeightFormat::compute, threads);
  const Vocabulary& target = loaded.subwords.target->vocabulary();
  const BatchTranslator batches(
      *loaded.model,
      {.rules = rules,
       .frame = {.bos = target.bos(), .eos = target.eos()},
       .never_generated = {target.never_generated().begin(), target.never_generated().end()},
       .batch_tokens = settings.search.batch_tokens});
  const WorkMemory memory = batches.plan(*loaded.parameters, 1);
  const Workers workers(*loaded.parameters, memory, threads);
  spdlog::info("[translate] {}; preset {}, beam {}, length penalty {}; {} MB for batches",
               loaded.checkpoint.string(), enum_name(settings.search.preset), rules.beam,
               rules.alpha, threads * (memory.activations + memory.scratch) >> 20);

  const std::int64_t model_takes = batches.max_source();
  Translator translator(*loaded.subwords.source, *loaded.subwords.target,
                        {.long_lines = settings.long_lines,
                         .max_source = std::min<std::int64_t>(
                             model_takes, settings.max_source.value_or(model_takes))},
                        [&](std::span<const std::vector<std::int32_t>> sources) {
                          return batches.translate(workers.passes(), sources);
                        });
  LineReader input("-");
  StandardOutput output;
  const double seconds = translate_stream(
      input, translator, {.nbest_lists = settings.nbest.has_value()}, [&](std::string_view lines) {
        output.write(lines);
        output.flush();
      });
  report(translator.counts(), seconds);
  return 0;
}

}  // namespace

Command translate_command() {
  auto path = std::make_shared<std::string>();
  Command c;
  c.name = "translate";
  c.summary = "translate standard input to standard output, line by line";
  c.usage = "RUN|CHECKPOINT [options] < SOURCE > TRANSLATION";
  c.options.add_options()("model", po::value(path.get())->required()->value_name("RUN|CHECKPOINT"),
                          "a run (its best checkpoint, else its newest) or one checkpoint");
  c.positional.add("model", 1);
  add_setting_options<TranslateSettings>(c.options);
  c.more_help = [] {
    return "How to search is taken from the run's settings, section 'translate'; what they leave "
           "out\n"
           "has the default shown here. A preset decides only what neither they nor options give:\n"
           "a run with 'beam: 4' keeps it under --preset fairseq, until --beam says otherwise.\n";
  };
  c.run = [path](const po::variables_map& given) {
    TranslateSettings defaults;
    defaults.search = search_of_run(*path);
    return translate(*path, settings_from_options(given, defaults));
  };
  return c;
}

}  // namespace octavo
