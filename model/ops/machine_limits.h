#pragma once

#include "core/dtype.h"

namespace octavo {

/// What this machine does at best, measured: a share of the peak is a share of this.
struct MachineLimits {
  double flops;  ///< per second, of a large product
  double bytes;  ///< per second, read and written, of a copy beyond the caches
};

/// Measures for about a quarter of a second.
/// @param type  of the product; its sums are wider, as everywhere.
MachineLimits measure_limits(int threads, DType type);

}  // namespace octavo
