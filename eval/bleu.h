#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "eval/bleu_tokens.h"
#include "eval/ngram_matches.h"

namespace octavo {

/// What a BLEU score depends on besides the text.
struct BleuSettings {
  BleuTokenize tokenize = BleuTokenize::v13a;
  bool lowercase = false;

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("tokenize", tokenize, "how BLEU cuts words: 13a, intl, char or none");
    v.setting("lowercase", lowercase, "count words without regard to case");
  }
};

/// Sufficient statistics of BLEU over any number of lines: they add, so ranks may each count a part
/// and sum `counts` as an array of int64.
struct BleuStatistics {
  /// [0] tokens of the hypotheses, [1] tokens of the references,
  /// [2 .. 5] n-grams matched, n = 1 .. 4, [6 .. 9] n-grams of the hypotheses.
  std::array<std::int64_t, 2 + 2 * kBleuOrder> counts{};

  std::int64_t hypothesis_tokens() const { return counts[0]; }
  std::int64_t reference_tokens() const { return counts[1]; }
  /// @param n  1 .. kBleuOrder.
  std::int64_t matched(int n) const { return counts[1 + n]; }
  std::int64_t total(int n) const { return counts[1 + kBleuOrder + n]; }

  BleuStatistics& operator+=(const BleuStatistics& other);
};

/// Counts lines of hypotheses against one reference each. Not thread-safe: one per thread.
class BleuCounter {
 public:
  explicit BleuCounter(const BleuSettings& settings);

  /// Adds one line. An n-gram of the hypothesis matches at most as often as the reference has it.
  void add(std::string_view hypothesis, std::string_view reference);
  const BleuStatistics& statistics() const { return statistics_; }

 private:
  BleuTokenizer hypothesis_tokens_, reference_tokens_;
  NgramMatches matches_;
  BleuStatistics statistics_;
};

/// A BLEU score and what it is made of, all as sacreBLEU reports them.
struct BleuScore {
  double score = 0;                             // 0 .. 100
  std::array<double, kBleuOrder> precisions{};  // percent
  double brevity_penalty = 0;
  double ratio = 0;  // hypothesis tokens / reference tokens; 0 without reference tokens
  std::int64_t hypothesis_tokens = 0, reference_tokens = 0;
};

/// Corpus BLEU with exponential smoothing: the k-th order without a match counts as
/// 1 / (2^k * n-grams of that order). Orders are not dropped when the corpus is short (sacreBLEU's
/// "eff:no"), so text without any 4-gram scores 0.
/// Source: Papineni et al. (2002), "BLEU"; Chen and Cherry (2014), smoothing method 3.
BleuScore bleu_score(const BleuStatistics& statistics);

/// sacreBLEU's signature, e.g. "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:octavo-0.1.0".
std::string bleu_signature(const BleuSettings& settings);

/// One line as sacreBLEU prints it, e.g.
/// "BLEU|SIGNATURE = 27.31 60.1/33.4/21.0/13.9 (BP = 0.981 ratio = 0.981 hyp_len = 9 ref_len = 9)".
std::string bleu_line(const BleuScore& score, const BleuSettings& settings);

}  // namespace octavo
