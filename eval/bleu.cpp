#include "eval/bleu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/version.h"

namespace octavo {
namespace {

// Precisions of the orders, in percent; an order that the text is too short for stays 0.
std::array<double, kBleuOrder> smoothed_precisions(const BleuStatistics& s) {
  std::array<double, kBleuOrder> precisions{};
  double halvings = 1;
  for (int n = 1; n <= kBleuOrder && s.total(n) > 0; ++n) {
    const auto total = static_cast<double>(s.total(n));
    if (s.matched(n) == 0) halvings *= 2;
    precisions[n - 1] = s.matched(n) == 0 ? 100.0 / (halvings * total)
                                          : 100.0 * static_cast<double>(s.matched(n)) / total;
  }
  return precisions;
}

double brevity_penalty(const BleuStatistics& s) {
  if (s.hypothesis_tokens() >= s.reference_tokens()) return 1;
  if (s.hypothesis_tokens() == 0) return 0;
  return std::exp(1 - static_cast<double>(s.reference_tokens()) /
                          static_cast<double>(s.hypothesis_tokens()));
}

}  // namespace

BleuStatistics& BleuStatistics::operator+=(const BleuStatistics& other) {
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  return *this;
}

BleuCounter::BleuCounter(const BleuSettings& settings)
    : hypothesis_tokens_(settings.tokenize, settings.lowercase),
      reference_tokens_(settings.tokenize, settings.lowercase) {}

void BleuCounter::add(std::string_view hypothesis, std::string_view reference) {
  const auto hypothesis_words = hypothesis_tokens_(hypothesis);
  const auto reference_words = reference_tokens_(reference);
  matches_.set_reference(reference_words);
  const auto matched = matches_.take_matches(hypothesis_words);

  const auto length = static_cast<std::int64_t>(hypothesis_words.size());
  BleuStatistics line;
  line.counts[0] = length;
  line.counts[1] = static_cast<std::int64_t>(reference_words.size());
  for (int n = 1; n <= kBleuOrder; ++n) {
    line.counts[1 + n] = matched[n - 1];
    line.counts[1 + kBleuOrder + n] = std::max<std::int64_t>(0, length - n + 1);
  }
  statistics_ += line;
}

BleuScore bleu_score(const BleuStatistics& statistics) {
  BleuScore result{.brevity_penalty = brevity_penalty(statistics),
                   .hypothesis_tokens = statistics.hypothesis_tokens(),
                   .reference_tokens = statistics.reference_tokens()};
  if (result.reference_tokens > 0)
    result.ratio = static_cast<double>(result.hypothesis_tokens) /
                   static_cast<double>(result.reference_tokens);
  // Without a single shared word (hence without any match) nothing is smoothed: all is 0.
  if (statistics.matched(1) == 0) return result;
  result.precisions = smoothed_precisions(statistics);
  double logs = 0;
  for (const double precision : result.precisions) logs += std::log(precision);  // log(0): -inf
  result.score = result.brevity_penalty * std::exp(logs / kBleuOrder);
  return result;
}

std::string bleu_signature(const BleuSettings& settings) {
  return fmt::format("nrefs:1|case:{}|eff:no|tok:{}|smooth:exp|version:octavo-{}",
                     settings.lowercase ? "lc" : "mixed", enum_name(settings.tokenize), kVersion);
}

std::string bleu_line(const BleuScore& s, const BleuSettings& settings) {
  return fmt::format(
      "BLEU|{} = {:.2f} {:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} "
      "ref_len = {})",
      bleu_signature(settings), s.score, s.precisions[0], s.precisions[1], s.precisions[2],
      s.precisions[3], s.brevity_penalty, s.ratio, s.hypothesis_tokens, s.reference_tokens);
}

}  // namespace octavo
