#pragma once

#include <cstdint>
#include <string>

#include "core/recorder.h"
#include "model/ops/machine_limits.h"

namespace octavo {

/// Where one rank's updates spent their time. Validation and saving are not in it.
struct UpdateTimes {
  std::int64_t updates = 0;
  double seconds = 0;             ///< of the updates as a whole
  double data_seconds = 0;        ///< of these, waited for a batch
  double collective_seconds = 0;  ///< and for gradients of other ranks
};

/// A table of many lines: each op's time, the costliest first, beside what the machine does at
/// best, then the waits and what remains. An op's limit is the time that its FLOPs take at the rate
/// of a large product or its bytes at the rate of a copy, whichever is more; its share can pass
/// 100 % where operands still lie in the caches.
std::string profile_text(const Profile& profile, const UpdateTimes& times,
                         const MachineLimits& limits);

}  // namespace octavo
