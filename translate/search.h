#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "translate/presets.h"
#include "translate/sentence_beam.h"

namespace octavo {

/// What a search asks of a model: the next piece's log-probabilities for rows of hypotheses,
/// grouped by sentence. It begins with one row per sentence.
class StepScorer {
 public:
  virtual ~StepScorer() = default;

  /// The likeliest next pieces of every row, best first: entry [row * k + i]. Pieces that may not
  /// be generated are left out. Valid until the next step.
  struct Pieces {
    std::int64_t k;
    std::span<const double> log_probabilities;
    std::span<const std::int32_t> ids;
    std::span<const double> eos;  ///< log-probability of EOS, row by row
  };

  /// Feeds the newest piece of every row; BOS at first.
  virtual Pieces step(std::span<const std::int32_t> newest) = 0;
  /// New row r continues old row parents[r]; sentence b now has rows[b] rows, none when it's done.
  virtual void select(std::span<const std::int32_t> parents,
                      std::span<const std::int32_t> rows) = 0;
};

/// The pieces that frame a target sentence.
struct Frame {
  std::int32_t bos, eos;
};

/// How many of a row's likeliest pieces a search looks at, of those that may be generated.
std::int64_t pieces_per_row(const SearchRules& rules, std::int64_t generated_vocabulary);

/// Searches for the translations of a batch of sentences at once.
///
/// A sentence that is done leaves the batch: its rows are dropped. What is found for a sentence
/// does not depend on the others, but for rounding in the scorer.
/// @param limits  of each sentence's output, in tokens, EOS counted, at least 1.
/// @return the translations of each sentence, best first: at least one, at most rules.nbest.
/// @throws UserError  the scorer gives something that is no number.
std::vector<std::vector<Translation>> beam_search(StepScorer& scorer, const SearchRules& rules,
                                                  Frame frame,
                                                  std::span<const std::int64_t> limits);

}  // namespace octavo
