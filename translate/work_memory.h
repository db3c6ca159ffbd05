#pragma once

#include <algorithm>
#include <cstdint>

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

}  // namespace octavo
