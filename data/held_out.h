#pragma once

#include <cstdint>
#include <vector>

#include "core/token_batch.h"
#include "data/corpus.h"
#include "data/partition.h"
#include "data/subwords.h"

namespace octavo {

/// A micro-batch of a held-out corpus.
struct HeldOutBatch {
  HostBatch batch;
  std::vector<std::int64_t> rows;  ///< row of the corpus of each of its sentences
};

/// One rank's share of a held-out corpus, cut like an update: all ranks together have every row
/// once, with about equal costs. Ordinals count the corpus' tokens in order.
/// @throws UserError  a sentence does not fit into a micro-batch, or the corpus is damaged.
std::vector<HeldOutBatch> held_out_batches(const Corpus& corpus, const Vocabulary& source,
                                           const Vocabulary& target, int rank, int ranks,
                                           const BatchLimits& limits);

}  // namespace octavo
