#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/end_to_end/experiment_folder.h"

namespace octavo::testkit {

/// Micro-batches of at most 192 target tokens: one rank takes about eight of them for an update,
/// eight ranks one each.
inline constexpr const char* kSmallBatches = "trainer.max_tokens=192";

/// What loss and gradient norm of the same update may differ by, relatively, if other ranks or
/// threads have trained it.
inline constexpr double kSameTraining = 1e-5;

/// The largest relative difference of loss or gradient norm in any update; infinite if there are
/// not equally many, or none.
inline double largest_difference(const std::vector<UpdateRecord>& a,
                                 const std::vector<UpdateRecord>& b) {
  if (a.size() != b.size() || a.empty()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst =
        std::max({worst, std::abs(a[i].loss / b[i].loss - 1), std::abs(a[i].norm / b[i].norm - 1)});
  }
  return worst;
}

}  // namespace octavo::testkit
