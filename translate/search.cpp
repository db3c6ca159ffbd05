#include "translate/search.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "model/ops/top_k.h"

namespace octavo {
namespace {

/// The beams of a batch, and between steps the rows that the scorer must have.
class BeamSearch {
 public:
  BeamSearch(const SearchRules& rules, Frame frame, std::span<const std::int64_t> limits);

  /// Whether any sentence is still searched for.
  bool going_on() const { return !newest_.empty(); }
  void step(StepScorer& scorer);
  std::vector<std::vector<Translation>> best() const;

 private:
  /// Fills extensions_ with those of one sentence, whose rows begin at `first`: best first.
  void extend(const SentenceBeam& beam, std::int64_t first, const StepScorer::Pieces& pieces);
  void extend_with_eos(const SentenceBeam& beam, std::int64_t first,
                       const StepScorer::Pieces& pieces);
  void add(std::int32_t row, std::int32_t piece, double log_probability);
  void sort(std::size_t considered);

  Frame frame_;
  std::vector<SentenceBeam> beams_;
  std::vector<std::int32_t> newest_, parents_, rows_;
  std::vector<Extension> extensions_;
};

BeamSearch::BeamSearch(const SearchRules& rules, Frame frame, std::span<const std::int64_t> limits)
    : frame_(frame), newest_(limits.size(), frame.bos) {
  beams_.reserve(limits.size());
  for (const std::int64_t limit : limits) beams_.emplace_back(rules, frame.eos, limit);
}

void BeamSearch::step(StepScorer& scorer) {
  const StepScorer::Pieces pieces = scorer.step(newest_);
  newest_.clear();
  parents_.clear();
  rows_.clear();
  std::int64_t first = 0;
  for (SentenceBeam& beam : beams_) {
    const auto width = static_cast<std::int64_t>(beam.living().size());
    if (width > 0) {
      extensions_.clear();
      if (beam.must_end()) {
        extend_with_eos(beam, first, pieces);
      } else {
        extend(beam, first, pieces);
      }
      sort(beam.considered());
      beam.advance(extensions_);
    }
    for (const SentenceBeam::Living& l : beam.living()) {
      parents_.push_back(static_cast<std::int32_t>(first) + l.row);
      newest_.push_back(l.piece);
    }
    rows_.push_back(static_cast<std::int32_t>(beam.living().size()));
    first += width;
  }
  if (going_on()) scorer.select(parents_, rows_);
}

void BeamSearch::extend(const SentenceBeam& beam, std::int64_t first,
                        const StepScorer::Pieces& pieces) {
  const auto k = static_cast<std::size_t>(pieces.k);
  for (std::size_t row = 0; row < beam.living().size(); ++row) {
    const double so_far = beam.living()[row].log_probability;
    const std::size_t begin = (static_cast<std::size_t>(first) + row) * k;
    for (std::size_t i = begin; i < begin + k; ++i) {
      if (pieces.ids[i] == frame_.eos && !beam.may_end()) continue;
      add(static_cast<std::int32_t>(row), pieces.ids[i], so_far + pieces.log_probabilities[i]);
    }
  }
}

void BeamSearch::extend_with_eos(const SentenceBeam& beam, std::int64_t first,
                                 const StepScorer::Pieces& pieces) {
  for (std::size_t row = 0; row < beam.living().size(); ++row) {
    add(static_cast<std::int32_t>(row), frame_.eos,
        beam.living()[row].log_probability + pieces.eos[static_cast<std::size_t>(first) + row]);
  }
}

void BeamSearch::add(std::int32_t row, std::int32_t piece, double log_probability) {
  if (std::isnan(log_probability)) throw UserError(kOutputIsNoNumber);
  extensions_.push_back({.row = row, .piece = piece, .log_probability = log_probability});
}

void BeamSearch::sort(std::size_t considered) {
  const std::size_t n = std::min(considered, extensions_.size());
  std::partial_sort(extensions_.begin(), extensions_.begin() + static_cast<std::ptrdiff_t>(n),
                    extensions_.end(), [](const Extension& a, const Extension& b) {
                      if (a.log_probability != b.log_probability) {
                        return a.log_probability > b.log_probability;
                      }
                      return a.row != b.row ? a.row < b.row : a.piece < b.piece;
                    });
  extensions_.resize(n);
}

std::vector<std::vector<Translation>> BeamSearch::best() const {
  std::vector<std::vector<Translation>> best;
  best.reserve(beams_.size());
  for (const SentenceBeam& beam : beams_) best.push_back(beam.best());
  return best;
}

}  // namespace

std::int64_t pieces_per_row(const SearchRules& rules, std::int64_t generated_vocabulary) {
  const std::int64_t eos = rules.shortest > 1 ? 1 : 0;  // may have to be passed over
  return std::min(std::int64_t{rules.considered} * rules.beam + eos, generated_vocabulary);
}

std::vector<std::vector<Translation>> beam_search(StepScorer& scorer, const SearchRules& rules,
                                                  Frame frame,
                                                  std::span<const std::int64_t> limits) {
  BeamSearch search(rules, frame, limits);
  while (search.going_on()) search.step(scorer);
  return search.best();
}

}  // namespace octavo
