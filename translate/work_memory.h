#pragma once

#include <algorithm>
#include <cstdint>

#include "core/token_batch.h"

namespace octavo {

/// Memory that work on batches of a bounded size takes at most, in bytes.
struct WorkMemory {
  std::int64_t activations = 0;  ///< capacity that Pass::memory must have
  std::int64_t scratch = 0;      ///< capacity of the context's scratch stack

  /// What serves one as well as the other.
  WorkMemory operator|(const WorkMemory& other) const {
    return {.activations = std::max(activations, other.activations),
            .scratch = std::max(scratch, other.scratch)};
  }
};

/// Calls visit(sentences, length) for the batches that can take most: of those with equally many
/// sentences the one with the longest. A batch of unequal sentences takes no more than one whose
/// sentences are all as long as its longest.
/// @param batch_size  sentences of a batch by the length of its longest; never rises with it.
template <typename BatchSize, typename Visit>
void for_largest_batches(std::int64_t max_length, BatchSize&& batch_size, Visit&& visit) {
  for (std::int64_t length = 1; length <= max_length; ++length) {
    const std::int64_t sentences = batch_size(length);
    if (length == max_length || batch_size(length + 1) != sentences) visit(sentences, length);
  }
}

/// Calls visit(source rows, target rows) for the batches of two sides that can take most. What
/// layers hold grows with both sides, but the product library's workspace follows the rows of one
/// side and does not grow steadily: each number of one side's rows is met with most of the other's.
/// @param most  rows of either side; at least kRowMultiple.
template <typename Visit>
void for_row_counts(std::int64_t most, Visit&& visit) {
  const std::int64_t largest = most / kRowMultiple * kRowMultiple;
  visit(largest, largest);
  for (std::int64_t rows = kRowMultiple; rows < largest; rows += kRowMultiple) {
    visit(rows, largest);
    visit(largest, rows);
  }
}

}  // namespace octavo
