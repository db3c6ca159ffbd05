#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace octavo {

/// Names one sentence pair: which corpus of `data.train`, which row of it.
struct SentenceRef {
  std::uint32_t corpus = 0;
  std::uint32_t index = 0;
  bool operator==(const SentenceRef&) const = default;
};

/// How much of an epoch one corpus is.
struct CorpusShare {
  std::int64_t sentences;
  /// Times each sentence is seen per epoch: floor(weight) whole passes, and a fresh random choice
  /// of round(fraction * sentences) for the rest.
  double weight = 1.0;
};

/// A half-open range of an epoch's draws.
struct DrawRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const DrawRange&) const = default;
};

/// An epoch's sentences in shuffled order, cut into updates.
///
/// The order is a pure function of (seed, epoch, shares). Sentences are drawn in that order,
/// whatever their length, until an update holds `tokens_per_update` target tokens (EOS counted);
/// so an update overshoots by less than its last sentence. The last update of an epoch holds what
/// is left and may be small: it is kept.
///
/// Draw i of the epoch is a sentence's occurrence: a corpus of weight 2 shows each sentence in two
/// draws. Memory: 4 bytes a draw, 8 bytes an update. Lengths are asked for only as far as updates
/// have been asked for, so that an epoch of drawn segmentations starts at once.
class EpochPlan {
 public:
  struct Settings {
    std::uint64_t seed;
    std::int64_t epoch;
    std::int64_t tokens_per_update;  ///< at least 1
  };
  /// Writes the target length, EOS counted, of draws [first, first + lengths.size()).
  using Lengths =
      std::function<void(const EpochPlan&, std::int64_t first, std::span<std::int32_t> lengths)>;

  /// @throws UserError  there are no sentences to draw, or more than 2^32 - 1.
  EpochPlan(const Settings& settings, const std::vector<CorpusShare>& shares, Lengths lengths);

  std::int64_t epoch() const { return settings_.epoch; }
  /// Sentences drawn in the whole epoch.
  std::int64_t draws() const { return static_cast<std::int64_t>(order_.size()); }
  SentenceRef sentence(std::int64_t draw) const;

  /// Whether the epoch has update k (counted from 0). Plans as far as that.
  bool has(std::int64_t update);
  /// The draws of update k. @throws InternalError  there is no such update.
  DrawRange update(std::int64_t update);
  /// The number of updates. Plans to the end of the epoch.
  std::int64_t updates();

 private:
  void plan_until(std::int64_t update);

  Settings settings_;
  Lengths lengths_;
  std::vector<std::int64_t> first_;   // the number of each corpus' first sentence; then their sum
  std::vector<std::uint32_t> order_;  // draw -> number of the sentence over all corpora
  std::vector<std::int64_t> begins_{0};  // update k: draws begins_[k] to begins_[k + 1]
  std::vector<std::int32_t> block_;      // lengths of draws [block_begin_, block_begin_ + size)
  std::int64_t block_begin_ = 0;
};

}  // namespace octavo
