#include "model/ops/elementwise.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/testkit/instruction_sets.h"
#include "tests/testkit/tensors.h"

namespace octavo {
namespace {

using testkit::TestTensor;

const std::vector<std::int64_t> kSizes = {0, 1, 3, 16, 17, 1009, 50021};

class ElementwiseKernel : public testkit::KernelTest {};
INSTANTIATE_TEST_SUITE_P(All, ElementwiseKernel, testkit::every_kernel(), testkit::kernel_name);

TEST_P(ElementwiseKernel, ConvertsToEveryTypeWithOneRounding) {
  Context ctx(Device::cpu, 2, 0);
  RandomStream random(2);
  for (const std::int64_t n : kSizes) {
    for (const DType to : {DType::f32, DType::f64, DType::bf16}) {
      const TestTensor x = TestTensor::random({n}, type(), random);
      TestTensor y({n}, to);
      convert(ctx, x, y);
      EXPECT_TRUE(y.same_bytes(x.as(to))) << n << " to " << name_of(to);
      EXPECT_TRUE(y.fence_intact());
    }
  }
}

TEST_P(ElementwiseKernel, ScattersRowsThatAreApart) {
  Context ctx(Device::cpu, 2, 0);
  RandomStream random(2);
  for (const std::int64_t rows : {0, 1, 257}) {
    const TestTensor from = TestTensor::random({rows, 140}, type(), random);
    TestTensor to = TestTensor::zeros({rows, 150}, type());
    // Backwards: row r goes to row R - 1 - r.
    std::vector<std::int32_t> places(static_cast<std::size_t>(rows));
    std::iota(places.rbegin(), places.rend(), 0);
    scatter_rows(ctx, from.view().columns(3, 131), Tensor(places.data(), {rows}, DType::i32),
                 to.view().columns(7, 131));
    const auto same = testkit::tolerance_of(DType::f64, 0);
    for (std::int64_t r = 0; r < rows; ++r) {
      const Tensor row = from.view().columns(3, 131).rows(r, 1);
      EXPECT_EQ("", testkit::mismatch(to.view().columns(7, 131).rows(rows - 1 - r, 1),
                                      testkit::values_of(row), same));
    }
    const std::vector<double> nothing(static_cast<std::size_t>(rows), 0.0);
    EXPECT_EQ("", testkit::mismatch(to.view().columns(6, 1), nothing, same));
    EXPECT_EQ("", testkit::mismatch(to.view().columns(138, 1), nothing, same));
  }
}

TEST(Zero, ClearsEveryByteAndNoOther) {
  Context ctx(Device::cpu, 2, 0);
  for (const std::int64_t n : {0, 1, 7, 200003}) {
    TestTensor t({n}, DType::f32);
    zero(ctx, t);
    EXPECT_TRUE(t.same_bytes(TestTensor::zeros({n}, DType::f32)));
    EXPECT_TRUE(t.fence_intact());
  }
}

TEST(Elementwise, RefusesWhatDoesNotFit) {
  Context ctx(Device::cpu, 1, 0);
  const TestTensor a({2, 3}, DType::f32), b({2, 2}, DType::f32);
  EXPECT_THROW(convert(ctx, a, b), InternalError);
  EXPECT_THROW(zero(ctx, a.view().columns(0, 2)), InternalError);
  TestTensor places({2}, DType::i32);
  places.set(1, 2);
  EXPECT_THROW(scatter_rows(ctx, a, places, a), InternalError);
}

TEST(Elementwise, StatesItsCostOnAPlan) {
  Context ctx(Device::plan, 1, 0);
  OpList list;
  ctx.set_recorder(&list);
  const Tensor x(nullptr, {10}, DType::bf16), y(nullptr, {10}, DType::f32);
  zero(ctx, y);
  convert(ctx, x, y);
  ASSERT_EQ(list.ops().size(), 2u);
  EXPECT_EQ(list.ops()[0].bytes, 40);
  EXPECT_EQ(list.ops()[1].bytes, 60);
}

}  // namespace
}  // namespace octavo
