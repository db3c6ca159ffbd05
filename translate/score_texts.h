#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/subwords.h"
#include "translate/scorer.h"

namespace octavo {

/// What scoring two texts needs besides them. Everything must outlive the call.
struct TextScoring {
  const Subwords& source;
  const Subwords& target;
  std::int64_t max_length;  ///< tokens of the longest side, EOS counted
  /// PairScorer::score with a Pass.
  std::function<std::vector<double>(std::span<const IdPair>)> score;
};

struct ScoreCounts {
  std::int64_t pairs = 0, target_tokens = 0;
  double log_probability = 0;
};

/// Scores line k of one text given line k of the other, and writes one number a line.
///
/// An empty line is EOS alone. Ill-formed UTF-8 is scored as U+FFFD, as in translation.
/// @throws UserError  the texts differ in their number of lines: names both; where the files can be
///                    read twice, before anything is scored. A line is longer than the model takes.
ScoreCounts score_texts(const std::string& source_path, const std::string& target_path,
                        const TextScoring& scoring,
                        const std::function<void(std::string_view)>& write);

}  // namespace octavo
