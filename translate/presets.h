#pragma once

#include <cstdint>

#include "translate/config.h"

namespace octavo {

/// What divides a hypothesis' log-probability, of n tokens.
enum class LengthPenalty : unsigned char {
  google,  ///< ((5 + n) / 6)^alpha; Wu et al. (2016), arXiv:1609.08144, equation 14, no coverage
  power,   ///< n^alpha
};

/// When a sentence is done before its length limit.
enum class StopRule : unsigned char {
  unbeatable,  ///< no living hypothesis can beat the worst finished one, at the limit's penalty
  full,        ///< as many hypotheses have finished as the beam is wide
  exhausted,   ///< nothing lives: each finished hypothesis has left its place in the beam empty
};

/// A search, in full. Three programs' searches differ in these points and no others.
///
/// At each step the living hypotheses of a sentence are extended by every piece; the best
/// `considered` x width extensions by log-probability are looked at, best first. One that ends
/// with EOS is finished if it is among the first `window` x width; of the others the best `width`
/// live on. Width is the beam, less what has finished if the stop rule is `exhausted`.
///
/// In all three, lengths count EOS: of the source, of the limit and in the penalty.
///
///                          transformer            fairseq             marian
///     beam                 4                      5                   12
///     penalty, alpha       google, 0.6            power, 1            power, 1
///     considered, window   2, 2                   2, 1                1, 1
///     finished kept        the best `beam`        the first `beam`    all
///     stop                 unbeatable             full                exhausted
///     limit, n = source    n + 50                 201                 3 n
///     at the limit         unfinished ones are    EOS is forced       all count as finished
///                          used only if none
///                          has finished
///     shortest             EOS alone              one piece and EOS   EOS alone
///
/// Sources, and where we differ: UNK is never generated (fairseq lets it be), and a sentence's
/// limit comes from its own source, not from the longest of its batch.
///   transformer  tensor2tensor, utils/beam_search.py and models/transformer.py; Vaswani et al.
///                (2017), section 6.1. With a beam of 1 it is greedy, as there. Asked for more than
///                one translation it stops only when the finished ones can't change any more;
///                tensor2tensor then goes on to the limit, with the same outcome. Unfinished ones
///                are scored with their penalty, there without.
///   fairseq      fairseq, sequence_generator.py and search.py; --max-len-a 0 --max-len-b 200,
///                --min-len 1. Ott et al. (2018) translate with beam 4 and --length-penalty 0.6.
///   marian       marian-dev, translator/beam_search.cpp and history.h; the beam is its default,
///                alpha is `--normalize`, whose value without a number and in its Transformer
///                recipes is 1 (left out, it is 0).
struct SearchRules {
  int beam;
  LengthPenalty penalty;
  double alpha;
  int considered;
  int window;
  StopRule stop;
  bool force_end;
  bool keep_unfinished;
  int shortest;      ///< tokens of the shortest translation, EOS counted
  int limit_factor;  ///< the limit is limit_factor * source + limit_extra
  std::int64_t limit_extra;
  int nbest = 1;  ///< translations wanted of each sentence, at most beam

  /// Log-probability divided by the length penalty. @param length  tokens, EOS counted.
  double score(double log_probability, std::int64_t length) const;
  /// Tokens of the longest translation, EOS counted. @param source  tokens, EOS counted.
  std::int64_t limit(std::int64_t source, std::int64_t max_positions) const;
};

/// The preset's rules with what the user has set instead.
/// @throws UserError  more translations are wanted than the beam holds.
SearchRules search_rules(const SearchConfig& config, int nbest = 1);

}  // namespace octavo
