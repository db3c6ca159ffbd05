#include "model/ops/machine_limits.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

// Bounds that any machine keeps, so that a wrong unit or a count left out is seen.
TEST(MachineLimits, AreThoseOfAProcessor) {
  const MachineLimits limits = measure_limits(1, DType::f32);
  EXPECT_GT(limits.flops, 1e8);
  EXPECT_LT(limits.flops, 1e14);
  EXPECT_GT(limits.bytes, 1e8);
  EXPECT_LT(limits.bytes, 1e13);
}

TEST(MachineLimits, Float64IsMeasuredToo) {
  EXPECT_GT(measure_limits(1, DType::f64).flops, 1e7);
}

}  // namespace
}  // namespace octavo
