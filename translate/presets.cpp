#include "translate/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace octavo {
namespace {

constexpr SearchRules kTransformer{.beam = 4,
                                   .penalty = LengthPenalty::google,
                                   .alpha = 0.6,
                                   .considered = 2,
                                   .window = 2,
                                   .stop = StopRule::unbeatable,
                                   .force_end = false,
                                   .keep_unfinished = false,
                                   .shortest = 1,
                                   .limit_factor = 1,
                                   .limit_extra = 50};
constexpr SearchRules kFairseq{.beam = 5,
                               .penalty = LengthPenalty::power,
                               .alpha = 1,
                               .considered = 2,
                               .window = 1,
                               .stop = StopRule::full,
                               .force_end = true,
                               .keep_unfinished = false,
                               .shortest = 2,
                               .limit_factor = 0,
                               .limit_extra = 201};
constexpr SearchRules kMarian{.beam = 12,
                              .penalty = LengthPenalty::power,
                              .alpha = 1,
                              .considered = 1,
                              .window = 1,
                              .stop = StopRule::exhausted,
                              .force_end = false,
                              .keep_unfinished = true,
                              .shortest = 1,
                              .limit_factor = 3,
                              .limit_extra = 0};

const SearchRules& preset_rules(SearchPreset preset) {
  switch (preset) {
    case SearchPreset::fairseq:
      return kFairseq;
    case SearchPreset::marian:
      return kMarian;
    case SearchPreset::transformer:
      break;
  }
  return kTransformer;
}

}  // namespace

double SearchRules::score(double log_probability, std::int64_t length) const {
  const auto n = static_cast<double>(length);
  const double base = penalty == LengthPenalty::google ? (5 + n) / 6 : n;
  return log_probability / std::pow(base, alpha);
}

std::int64_t SearchRules::limit(std::int64_t source, std::int64_t max_positions) const {
  return std::min(limit_factor * source + limit_extra, max_positions);
}

SearchRules search_rules(const SearchConfig& config, int nbest) {
  SearchRules rules = preset_rules(config.preset);
  rules.beam = config.beam.value_or(rules.beam);
  rules.alpha = config.length_penalty.value_or(rules.alpha);
  rules.shortest = config.min_length.value_or(rules.shortest);
  if (config.max_length) {
    rules.limit_factor = 0;
    rules.limit_extra = *config.max_length;
  }
  if (rules.beam == 1 && rules.stop == StopRule::unbeatable) {
    // Greedy: the second best may not end the sentence, and the first that ends it is taken.
    rules.window = 1;
    rules.stop = StopRule::full;
  }
  if (nbest > rules.beam) {
    throw UserError(fmt::format(
        "nbest is {} but the beam holds {} hypotheses: a search can't give more translations than "
        "that. Ask for fewer, or widen the beam (--beam {})",
        nbest, rules.beam, nbest));
  }
  rules.nbest = nbest;
  return rules;
}

}  // namespace octavo
