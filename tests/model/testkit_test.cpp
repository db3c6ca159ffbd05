// The checks that other tests stand on must be able to fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/testkit/gradient.h"
#include "tests/testkit/tensors.h"

namespace octavo::testkit {
namespace {

TEST(GradMismatch, AcceptsTheRightGradientAndNamesTheWorstElement) {
  TestTensor x({3}, DType::f64, {0.5, -1, 2});
  TestTensor dx({3}, DType::f64);
  for (std::int64_t i = 0; i < 3; ++i) dx.set(i, std::cos(x.get(i)));
  const auto loss = [&] { return std::sin(x.get(0)) + std::sin(x.get(1)) + std::sin(x.get(2)); };
  EXPECT_EQ("", grad_mismatch(loss, {{"x", x, dx}}, 1e-9));
  dx.set(2, -0.25);
  EXPECT_THAT(grad_mismatch(loss, {{"x", x, dx}}, 1e-9),
              ::testing::StartsWith("d loss / d x[2]: backward says -0.25, central difference says "
                                    "-0.416147 (relative error 0.166147, allowed 1e-09)"));
  EXPECT_EQ(x.values(), (std::vector<double>{0.5, -1, 2})) << "values must be restored";
}

TEST(GradMismatch, NoticesNaNAndWrongSize) {
  TestTensor x({2}, DType::f64, {1, 2});
  const auto loss = [&] { return x.get(0) + x.get(1); };
  const TestTensor unwritten({2}, DType::f64), short_one({1}, DType::f64, {1});
  EXPECT_NE("", grad_mismatch(loss, {{"x", x, unwritten}}, 1e-9));
  EXPECT_NE("", grad_mismatch(loss, {{"x", x, short_one}}, 1e-9));
}

TEST(Mismatch, ComparesWithinTheTolerance) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const TestTensor t({3}, DType::f32, {1, 2, infinity});
  EXPECT_EQ("", mismatch(t, {1.01, 2, infinity}, {.relative = 0.02, .absolute = 0}));
  EXPECT_THAT(mismatch(t, {1.1, 2, infinity}, {.relative = 0.02, .absolute = 0}),
              ::testing::HasSubstr("[0], is 1, expected 1.1"));
  EXPECT_NE("", mismatch(t, {1, 2, 3}, {.relative = 0.02, .absolute = 0}));
  EXPECT_NE("", mismatch(t, {1, nan, infinity}, {.relative = 0.02, .absolute = 0}));
  EXPECT_NE("", mismatch(t, {1, 2}, {.relative = 0.02, .absolute = 0}));
}

TEST(TestTensor, NoticesWritesBesideIt) {
  const TestTensor t({2, 2}, DType::bf16);
  EXPECT_TRUE(std::isnan(t.get(3)));
  EXPECT_TRUE(t.fence_intact());
  t.view().data<bfloat16>()[4] = bfloat16(1.0f);
  EXPECT_FALSE(t.fence_intact());
}

}  // namespace
}  // namespace octavo::testkit
