#include "model/ops/packed_weight.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/error.h"
#include "model/ops/int8_rows.h"
#include "model/ops/linear.h"
#include "oneapi/dnnl/dnnl.h"
#include "tests/testkit/instruction_sets.h"
#include "tests/testkit/tensors.h"

namespace octavo {
namespace {

using testkit::TestTensor;

constexpr std::int64_t kScratch = 64 << 20;

struct Shape {
  std::int64_t N, O, I;
};
// Nothing, one, primes, what decoding sees, and more rows than are rounded at a time.
const std::vector<Shape> kShapes = {{0, 3, 2},    {1, 1, 1},      {3, 17, 5},   {7, 13, 11},
                                    {8, 64, 256}, {96, 192, 128}, {131, 61, 7}, {70, 8000, 16}};

std::vector<double> product(const TestTensor& x, const TestTensor& weight, const TestTensor* bias,
                            const Shape& s) {
  std::vector<double> y;
  for (std::int64_t n = 0; n < s.N; ++n) {
    for (std::int64_t o = 0; o < s.O; ++o) {
      double sum = bias != nullptr ? bias->get(o) : 0;
      for (std::int64_t i = 0; i < s.I; ++i) sum += x.get(n * s.I + i) * weight.get(o * s.I + i);
      y.push_back(sum);
    }
  }
  return y;
}

// Each row rounded to eight bits, by the definition.
TestTensor rounded(const TestTensor& t, std::int64_t rows, std::int64_t columns) {
  TestTensor result = t.as(DType::f64);
  for (std::int64_t r = 0; r < rows; ++r) {
    double largest = 0;
    for (std::int64_t c = 0; c < columns; ++c)
      largest = std::max(largest, std::abs(t.get(r * columns + c)));
    const double scale = largest / 127;
    for (std::int64_t c = 0; c < columns && scale > 0; ++c) {
      const auto factor = static_cast<float>(127 / static_cast<float>(largest));
      const float q = std::nearbyint(static_cast<float>(t.get(r * columns + c)) * factor);
      result.set(r * columns + c, scale * static_cast<double>(q));
    }
  }
  return result;
}

/// Why this processor has no products of int8; "" if it has.
std::string int8_reason() {
  Context ctx(Device::cpu, 1, 0);
  const TestTensor weight({1, 1}, DType::f32, {1});
  try {
    const PackedWeight packed(ctx, weight, WeightFormat::int8);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

class PackedWeightTest : public ::testing::TestWithParam<DType> {};

TEST_P(PackedWeightTest, GivesTheSameProducts) {
  const DType type = GetParam();
  Context ctx(Device::cpu, 1, kScratch);
  for (const Shape& s : kShapes) {
    RandomStream random(7);
    const TestTensor x = TestTensor::random({s.N, s.I}, type, random);
    const TestTensor weight = TestTensor::random({s.O, s.I}, type, random);
    const TestTensor bias = TestTensor::random({s.O}, type, random);
    const PackedWeight packed(ctx, weight, WeightFormat::compute);
    TestTensor y({s.N, s.O}, type), logits({s.N, s.O}, DType::f32);
    linear_forward(ctx, {.x = x, .weight = weight, .bias = bias, .packed = &packed}, y);
    linear_forward(ctx, {.x = x, .weight = weight, .packed = &packed}, logits);
    EXPECT_EQ("",
              testkit::mismatch(y, product(x, weight, &bias, s), testkit::tolerance_of(type, 5)))
        << s.N << "x" << s.O << "x" << s.I;
    EXPECT_EQ("", testkit::mismatch(logits, product(x, weight, nullptr, s),
                                    testkit::tolerance_of(DType::f32, 5)))
        << s.N << "x" << s.O << "x" << s.I;
    EXPECT_TRUE(y.fence_intact() && logits.fence_intact());
  }
  EXPECT_EQ(ctx.scratch().used(), 0);
}

TEST_P(PackedWeightTest, RowsOfTheInputMayBeApartAndThoseOfTheOutputNot) {
  const DType type = GetParam();
  Context ctx(Device::cpu, 1, kScratch);
  const Shape s{5, 6, 10};
  RandomStream random(3);
  const TestTensor wide = TestTensor::random({s.N, 25}, type, random);
  const TestTensor weight = TestTensor::random({s.O, s.I}, type, random);
  const PackedWeight packed(ctx, weight, WeightFormat::compute);
  TestTensor x({s.N, s.I}, type);
  x.set(testkit::values_of(wide.view().columns(3, s.I)));
  const TestTensor y = TestTensor::zeros({s.N, s.O}, type), apart({s.N, 20}, type);
  const LinearArgs in{.x = wide.view().columns(3, s.I), .weight = weight, .packed = &packed};
  linear_forward(ctx, in, y);
  EXPECT_EQ("",
            testkit::mismatch(y, product(x, weight, nullptr, s), testkit::tolerance_of(type, 5)));
  EXPECT_THROW(linear_forward(ctx, in, apart.view().columns(7, s.O)), InternalError);
}

TEST_P(PackedWeightTest, PlanMeasuresTheScratchThatTheRunNeeds) {
  const DType type = GetParam();
  for (const WeightFormat format : {WeightFormat::compute, WeightFormat::int8}) {
    if (format == WeightFormat::int8 && (type != DType::f32 || !int8_reason().empty())) continue;
    for (const Shape& s : {Shape{1, 96, 64}, Shape{70, 8000, 16}}) {
      RandomStream random(5);
      const TestTensor x = TestTensor::random({s.N, s.I}, type, random);
      const TestTensor weight = TestTensor::random({s.O, s.I}, type, random);
      Context plan(Device::plan, 1, 0);
      const PackedWeight planned(plan, weight, format);
      linear_forward(plan, {.x = x, .weight = weight, .packed = &planned},
                     Tensor(nullptr, {s.N, s.O}, type));
      Context ctx(Device::cpu, 1, plan.scratch().high_water());
      const PackedWeight packed(ctx, weight, format);
      const TestTensor y({s.N, s.O}, type);
      linear_forward(ctx, {.x = x, .weight = weight, .packed = &packed}, y);
      EXPECT_EQ(ctx.scratch().high_water(), plan.scratch().high_water());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PackedWeightTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

class Int8Kernel : public ::testing::TestWithParam<std::int64_t> {
 protected:
  Int8Kernel() : use_(GetParam()) {}
  void SetUp() override {
    if (!int8_reason().empty()) GTEST_SKIP() << int8_reason();
  }
  testkit::UseInstructionSet use_;
};

// Integers are exact: what is left is the rounding of one multiplication by the scales.
TEST_P(Int8Kernel, GivesTheProductOfRoundedRows) {
  Context ctx(Device::cpu, 1, kScratch);
  for (const Shape& s : kShapes) {
    RandomStream random(11);
    TestTensor x = TestTensor::random({s.N, s.I}, DType::f32, random);
    const TestTensor weight = TestTensor::random({s.O, s.I}, DType::f32, random);
    const TestTensor bias = TestTensor::random({s.O}, DType::f32, random);
    const PackedWeight packed(ctx, weight, WeightFormat::int8);
    const TestTensor y({s.N, s.O}, DType::f32);
    linear_forward(ctx, {.x = x, .weight = weight, .bias = bias, .packed = &packed}, y);
    EXPECT_EQ(
        "", testkit::mismatch(y, product(rounded(x, s.N, s.I), rounded(weight, s.O, s.I), &bias, s),
                              {.relative = 1e-6, .absolute = 1e-5}))
        << s.N << "x" << s.O << "x" << s.I;
    EXPECT_TRUE(y.fence_intact());
  }
}

TEST_P(Int8Kernel, RowsOfZerosAndLargeRowsAreExact) {
  Context ctx(Device::cpu, 1, kScratch);
  const Shape s{3, 2, 5};
  const TestTensor x({3, 5}, DType::f32,
                     {0, 0, 0, 0, 0, 1e30, -1e30, 0, 1e30, 0, 127, -127, 3, 1, 0});
  const TestTensor weight({2, 5}, DType::f32, {127, 1, -5, 0, 2, 0, 0, 0, 0, 0});
  const PackedWeight packed(ctx, weight, WeightFormat::int8);
  const TestTensor y({3, 2}, DType::f32);
  linear_forward(ctx, {.x = x, .weight = weight, .packed = &packed}, y);
  EXPECT_EQ("", testkit::mismatch(y, product(x, weight, nullptr, s), {1e-6, 0}));
}

TEST_P(Int8Kernel, WhatIsNoNumberStaysNone) {
  Context ctx(Device::cpu, 1, kScratch);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const std::int64_t place : {0, 20}) {
      std::vector<double> values(2 * 21, 1.0);
      values[static_cast<std::size_t>(place)] = bad;
      const TestTensor x({2, 21}, DType::f32, values);
      RandomStream random(1);
      const TestTensor weight = TestTensor::random({3, 21}, DType::f32, random);
      const PackedWeight packed(ctx, weight, WeightFormat::int8);
      const TestTensor y({2, 3}, DType::f32);
      linear_forward(ctx, {.x = x, .weight = weight, .packed = &packed}, y);
      for (std::int64_t o = 0; o < 3; ++o) {
        EXPECT_FALSE(std::isfinite(y.get(o))) << bad << " at " << place;
        EXPECT_TRUE(std::isfinite(y.get(3 + o))) << "the row beside it";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Int8Kernel, ::testing::ValuesIn(testkit::instruction_sets()),
                         [](const auto& set) { return std::string(hwy::TargetName(set.param)); });

// In a process of its own: oneDNN reads the limit before its first product only.
TEST(Int8DeathTest, IsRefusedWhereItWouldBeWrong) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto without_vnni = [] {
    dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    Context ctx(Device::cpu, 1, kScratch);
    const TestTensor weight({1, 1}, DType::f32, {1});
    try {
      const PackedWeight packed(ctx, weight, WeightFormat::int8);
    } catch (const UserError& e) {
      std::fputs(e.what(), stderr);
      std::exit(2);
    }
    std::exit(0);
  };
  EXPECT_EXIT(without_vnni(), ::testing::ExitedWithCode(2), "set precision: float32");
}

}  // namespace
}  // namespace octavo
