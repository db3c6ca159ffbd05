#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "core/philox.h"
#include "translate/search.h"

namespace octavo::testkit {

using Ids = std::vector<std::int32_t>;

inline constexpr std::int32_t kPad = 0, kBos = 1, kEos = 2, kUnk = 3, kFirstPiece = 4;
inline constexpr Frame kFrame{.bos = kBos, .eos = kEos};

/// log p(piece | sentence, prefix) for each piece, specials included.
using Distribution = std::function<std::vector<double>(std::size_t sentence, const Ids& prefix)>;

/// Random distributions: a pure function of (seed, sentence, prefix).
/// @param eos_bias  added to the logit of EOS, so that sentences become short or long.
inline Distribution random_distribution(std::uint64_t seed, std::size_t vocabulary,
                                        double eos_bias = 0) {
  return [=](std::size_t sentence, const Ids& prefix) {
    std::uint64_t key = mix(seed, sentence);
    for (const std::int32_t id : prefix) key = mix(key, static_cast<std::uint64_t>(id));
    RandomStream stream(key);
    std::vector<double> p(vocabulary);
    for (double& x : p) x = 2 * stream.normal();
    p[kEos] += eos_bias;
    double sum = 0;
    for (const double x : p) sum += std::exp(x);
    for (double& x : p) x -= std::log(sum);
    return p;
  };
}

/// A StepScorer that looks its answers up in a Distribution and checks how it is called.
class HandMadeScorer : public StepScorer {
 public:
  HandMadeScorer(Distribution distribution, std::size_t sentences, std::int64_t k)
      : distribution_(std::move(distribution)), k_(static_cast<std::size_t>(k)) {
    for (std::size_t b = 0; b < sentences; ++b) rows_.push_back({b, {}});
  }

  Pieces step(std::span<const std::int32_t> newest) override {
    expect(newest.size() == rows_.size(), "step: another number of rows than selected");
    log_probabilities_.clear();
    ids_.clear();
    eos_.clear();
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (newest[r] != kBos) rows_[r].prefix.push_back(newest[r]);
      const std::vector<double> all = distribution_(rows_[r].sentence, rows_[r].prefix);
      Ids order{kEos};
      for (std::size_t v = kFirstPiece; v < all.size(); ++v) {
        order.push_back(static_cast<std::int32_t>(v));
      }
      const auto p = [&](std::int32_t id) { return all[static_cast<std::size_t>(id)]; };
      std::stable_sort(order.begin(), order.end(),
                       [&](std::int32_t a, std::int32_t b) { return p(a) > p(b); });
      for (std::size_t i = 0; i < k_; ++i) {
        ids_.push_back(order.at(i));
        log_probabilities_.push_back(p(order[i]));
      }
      eos_.push_back(p(kEos));
    }
    row_counts.push_back(rows_.size());
    return {static_cast<std::int64_t>(k_), log_probabilities_, ids_, eos_};
  }

  void select(std::span<const std::int32_t> parents, std::span<const std::int32_t> rows) override {
    std::vector<Row> next;
    for (const std::int32_t parent : parents) {
      next.push_back(rows_.at(static_cast<std::size_t>(parent)));
    }
    std::size_t r = 0;
    for (std::size_t b = 0; b < rows.size(); ++b) {
      for (std::int32_t i = 0; i < rows[b]; ++i) {
        expect(next.at(r++).sentence == b, "select: a row went to another sentence");
      }
    }
    expect(r == next.size(), "select: rows don't add up");
    rows_ = std::move(next);
  }

  std::vector<std::size_t> row_counts;  ///< at each step

 private:
  struct Row {
    std::size_t sentence;
    Ids prefix;
  };
  Distribution distribution_;
  std::size_t k_;
  std::vector<Row> rows_;
  std::vector<double> log_probabilities_, eos_;
  Ids ids_;
};

/// Searches a batch by a Distribution over `vocabulary` pieces.
inline std::vector<std::vector<Translation>> search_by(const Distribution& distribution,
                                                       std::size_t vocabulary,
                                                       const SearchRules& rules,
                                                       const std::vector<std::int64_t>& limits) {
  HandMadeScorer scorer(
      distribution, limits.size(),
      pieces_per_row(rules, static_cast<std::int64_t>(vocabulary) - kFirstPiece + 1));
  return beam_search(scorer, rules, kFrame, limits);
}

}  // namespace octavo::testkit
