#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "model/ops/optimizer.h"

namespace octavo {

/// Elements of the flat buffers that are treated as one piece of work. A multiple of any vector.
inline constexpr std::int64_t kFlatBlock = 4096;

constexpr std::int64_t flat_blocks(std::int64_t elements) {
  return (elements + kFlatBlock - 1) / kFlatBlock;
}

/// Calls f(run, from, to) for the part of each run that lies in [begin, end), in order.
template <typename F>
void for_runs(std::span<const ParameterRun> runs, std::int64_t begin, std::int64_t end, F&& f) {
  const auto first = std::partition_point(
      runs.begin(), runs.end(), [&](const ParameterRun& run) { return run.end <= begin; });
  for (auto run = first; run != runs.end() && run->begin < end; ++run) {
    f(*run, std::max(run->begin, begin), std::min(run->end, end));
  }
}

}  // namespace octavo
