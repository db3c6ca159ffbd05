#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "translate/presets.h"

namespace octavo {

/// One translation of a sentence.
struct Translation {
  std::vector<std::int32_t> ids;  ///< without BOS and EOS
  double log_probability = 0;     ///< of the ids and of EOS, if it ended
  double score = 0;               ///< what it is ranked by: log_probability / length penalty
  bool ended = true;              ///< false: the length limit cut it off before EOS
};

/// An extension of a living hypothesis by one piece.
struct Extension {
  std::int32_t row;  ///< of the hypothesis among those that live
  std::int32_t piece;
  double log_probability;  ///< of the whole hypothesis
};

/// The search for one sentence's translation: what lives, what has finished, when to stop.
class SentenceBeam {
 public:
  /// @param limit  tokens of the longest translation, EOS counted, at least 1.
  SentenceBeam(const SearchRules& rules, std::int32_t eos, std::int64_t limit);

  /// A hypothesis after its newest piece.
  struct Living {
    std::int32_t row;  ///< which of the rows before it continues
    std::int32_t piece;
    double log_probability;
    std::int32_t node;
  };
  /// Best first; one without a piece at the start; none when done.
  std::span<const Living> living() const { return living_; }
  bool done() const { return living_.empty(); }

  /// Whether the next piece of every hypothesis must be EOS.
  bool must_end() const { return rules_.force_end && length_ + 1 == limit_; }
  /// Whether the next piece may be EOS.
  bool may_end() const { return length_ + 1 >= rules_.shortest || length_ + 1 == limit_; }
  /// How many extensions the next step looks at.
  std::size_t considered() const { return rules_.considered * width_; }

  /// Takes a step. @param extensions  the best considered() ones or all there are, best first;
  /// they may be fewer. None ends with EOS unless may_end().
  void advance(std::span<const Extension> extensions);

  /// The best that were found, best first: at least one, at most rules.nbest.
  std::vector<Translation> best() const;

 private:
  struct Node {  // a piece and what it follows
    std::int32_t parent, piece;
  };
  struct Finished {
    std::int32_t node;
    double log_probability, score;
    bool ended;
  };

  void finish(std::int32_t node, double log_probability, bool ended);
  bool may_stop() const;
  Translation translation(const Finished& finished) const;

  const SearchRules& rules_;
  std::int32_t eos_;
  std::int64_t limit_, length_ = 0;
  std::size_t width_;
  std::vector<Node> nodes_;
  std::vector<Living> living_, next_;
  std::vector<Finished> finished_;
};

}  // namespace octavo
