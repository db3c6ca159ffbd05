#pragma once

#include <cstdint>

#include "model/layers/pass.h"
#include "model/parameters.h"

namespace octavo {

/// What a memory plan asks of a task. It needs sizes, but no data.
class PlannedWork {
 public:
  virtual ~PlannedWork() = default;

  virtual const ParameterTable& parameter_table() const = 0;
  /// Runs, on a plan, the micro-batches of at most max_tokens a side that can take most.
  virtual void plan(const Pass& pass, std::int64_t max_tokens) const = 0;
  /// max_tokens can't be less: the longest sentence must fit.
  virtual std::int64_t smallest_max_tokens() const = 0;
  /// What validation takes. @param own_weights  whether it gets weights of its own (EMA).
  virtual std::int64_t validation_bytes(bool own_weights) const = 0;
};

}  // namespace octavo
