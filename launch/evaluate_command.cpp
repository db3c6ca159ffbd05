#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/lines.h"
#include "core/output.h"
#include "eval/bleu.h"
#include "launch/choice.h"
#include "launch/commands.h"

namespace octavo {
namespace {

struct EvaluateSettings {
  std::string reference;
  std::string tokenize;
  bool lowercase = false;
};

void check_utf8(std::string_view line, const std::string& name, std::int64_t number) {
  const std::size_t at = first_invalid_utf8(line);
  if (at == line.size()) return;
  throw UserError(fmt::format(
      "{}: line {} is not UTF-8 at byte {}, so its characters can't be counted. Convert the file, "
      "e.g. with 'iconv -f latin1 -t utf-8'.",
      name, number, at + 1));
}

/// The number of lines in all, from where the reader stands to the end.
std::int64_t count_lines(LineReader& reader) {
  while (reader.next()) {
  }
  return reader.line_number();
}

// sacreBLEU warns of this too: text that was tokenized before gets a score that nobody can compare.
void warn_if_tokenized(std::int64_t stops) {
  if (stops < 100) return;
  spdlog::warn(
      "[eval] {} hypotheses end in ' .', as tokenized text does; BLEU tokenizes by itself, so it "
      "should be given text as people write it",
      stops);
}

int evaluate(const EvaluateSettings& settings) {
  const BleuSettings bleu{.tokenize = choice<BleuTokenize>("--tokenize", settings.tokenize),
                          .lowercase = settings.lowercase};
  if (settings.reference == "-") {
    throw UserError("--reference can't be standard input: the hypotheses come from there");
  }
  const std::string hypotheses_name = "standard input (the hypotheses)";
  LineReader hypotheses("-"), references(settings.reference);
  BleuCounter counter(bleu);
  std::int64_t tokenized_stops = 0;
  for (;;) {
    const auto hypothesis = hypotheses.next();
    const auto reference = references.next();
    if (hypothesis.has_value() != reference.has_value()) {
      const std::int64_t lines = count_lines(hypotheses), wanted = count_lines(references);
      throw UserError(fmt::format(
          "{} has {} lines but {} has {}. Line k of one must translate what line k of the other "
          "translates, so they must match. Was the whole test set translated, one line for one?",
          hypotheses_name, lines, settings.reference, wanted));
    }
    if (!hypothesis) break;
    check_utf8(*hypothesis, hypotheses_name, hypotheses.line_number());
    check_utf8(*reference, settings.reference, references.line_number());
    if (hypothesis->ends_with(" .")) ++tokenized_stops;
    counter.add(*hypothesis, *reference);
  }
  if (references.line_number() == 0)
    throw UserError(fmt::format("{} and {} have no lines: there is nothing to evaluate",
                                settings.reference, hypotheses_name));
  warn_if_tokenized(tokenized_stops);

  StandardOutput out;
  out.write(bleu_line(bleu_score(counter.statistics()), bleu) + "\n");
  out.write(fmt::format("{}: {} lines\n", settings.reference, references.line_number()));
  out.flush();
  return 0;
}

}  // namespace

Command evaluate_command() {
  auto s = std::make_shared<EvaluateSettings>();
  Command c;
  c.name = "evaluate";
  c.summary = "BLEU of translations on stdin, equal to sacreBLEU's";
  c.usage = "--reference FILE [options] < hypotheses";
  auto add = c.options.add_options();
  add("reference", po::value(&s->reference)->required()->value_name("FILE"),
      "the right translations, line by line, as people write them");
  add("tokenize", po::value(&s->tokenize)->default_value("13a")->value_name("NAME"),
      "how words are cut: 13a, intl, char or none");
  add("lowercase", po::bool_switch(&s->lowercase), "count words without regard to case");
  c.run = [s](const po::variables_map&) { return evaluate(*s); };
  return c;
}

}  // namespace octavo
