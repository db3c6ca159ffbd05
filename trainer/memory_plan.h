#pragma once

#include <cstdint>
#include <string>

#include "trainer/config.h"
#include "trainer/planned_work.h"

namespace octavo {

/// Bytes one rank takes, found by running the largest micro-batch on a plan. Nothing is estimated.
struct MemoryPlan {
  std::int64_t max_tokens = 0;   ///< of a micro-batch
  std::int64_t parameters = 0;   ///< master weights, gradients, bf16 copy
  std::int64_t optimizer = 0;    ///< moments, running average
  std::int64_t activations = 0;  ///< what forward saves until backward
  std::int64_t scratch = 0;
  std::int64_t validation = 0;  ///< decoding, with weights of its own if an average is kept

  std::int64_t total() const { return parameters + optimizer + activations + scratch + validation; }
};

/// @param threads  CPU ops keep scratch per thread.
MemoryPlan plan_memory(const PlannedWork& work, const TrainerConfig& config, int threads,
                       std::int64_t max_tokens);

/// Bytes that one of `ranks_on_host` ranks may take: what was set, else 80 % of its share of what
/// the host has free.
std::int64_t memory_budget(const TrainerConfig& config, int ranks_on_host);

/// The plan for config.max_tokens, or for `auto` the largest that fits the budget.
/// @throws UserError  it does not fit: with what each part takes, and what to change.
MemoryPlan choose_plan(const PlannedWork& work, const TrainerConfig& config, int threads,
                       std::int64_t budget);

}  // namespace octavo
