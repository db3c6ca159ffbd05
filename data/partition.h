#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace octavo {

/// Tokens of a pair as the model sees them: EOS counted on both sides.
struct PairLength {
  std::int32_t source;
  std::int32_t target;
};

/// What a micro-batch may hold at most. Each side obeys each of them on its own; a side's tokens
/// are rounded up to kRowMultiple, as its rows will be.
struct BatchLimits {
  std::int64_t source_tokens;
  std::int64_t target_tokens;
  std::int64_t sentences;
  std::int64_t longest;      ///< tokens of one sentence
  std::int64_t sum_squares;  ///< sum of length^2: what attention weights take; bounds source x
                             ///< target too (Cauchy, Schwarz)
};

/// A rank's micro-batch: entries [begin, end) of Partition::order.
struct MicroBatch {
  std::uint32_t begin, end;
};

/// An update cut into micro-batches. Reuse one: its memory is kept from update to update.
struct Partition {
  std::vector<std::uint32_t> order;       ///< the update's sentences, micro-batch by micro-batch
  std::vector<MicroBatch> micro_batches;  ///< rank by rank
  std::vector<std::uint32_t> first;       ///< [ranks + 1], each rank's first micro-batch
  std::vector<std::int64_t> costs;        ///< [ranks], sum of pair_cost

  std::span<const MicroBatch> of_rank(int rank) const;
  std::span<const std::uint32_t> sentences(const MicroBatch& m) const {
    return std::span(order).subspan(m.begin, m.end - m.begin);
  }
};

/// Estimated work of a pair, forward and backward, in arbitrary units: so much per token of each
/// side, and attention by length squared.
std::int64_t pair_cost(PairLength pair);

/// Cuts an update for `ranks` ranks: every sentence exactly once, no micro-batch over a limit,
/// costs of the ranks as equal as can be, and within a rank the micro-batches about equal.
///
/// A pure function of its arguments: every rank computes the same. A rank may get fewer
/// micro-batches than another, or none; it takes part in every collective all the same. Inside a
/// rank, sentences are sorted by length, so that a micro-batch holds similar ones.
///
/// @param name  names sentence i for a message, e.g. "train.en line 17"
/// @throws UserError  one sentence alone is over a limit.
void partition(std::span<const PairLength> update, int ranks, const BatchLimits& limits,
               const std::function<std::string(std::uint32_t)>& name, Partition& out);

}  // namespace octavo
