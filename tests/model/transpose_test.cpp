#include <gtest/gtest.h>

#include "model/ops/transpose_cpu.h"
#include "tests/testkit/instruction_sets.h"
#include "tests/testkit/tensors.h"

namespace octavo {
namespace {

using testkit::TestTensor;

class TransposeKernel : public testkit::KernelTest {};
INSTANTIATE_TEST_SUITE_P(All, TransposeKernel,
                         ::testing::Combine(::testing::ValuesIn(testkit::instruction_sets()),
                                            ::testing::Values(DType::f32, DType::bf16)),
                         testkit::kernel_name);

TEST_P(TransposeKernel, MovesEveryElementAndNoOther) {
  RandomStream random(1);
  for (const std::int64_t rows : {0, 1, 3, 4, 8, 9, 33, 64, 71}) {
    for (const std::int64_t columns : {0, 1, 5, 8, 16, 31, 32, 67}) {
      const TestTensor from = TestTensor::random({rows, columns + 3}, type(), random);
      const std::int64_t stride = rows + columns % 3;
      const TestTensor to({columns, stride}, type());
      transpose({.type = type(),
                 .from = from.view().columns(2, columns).raw(),
                 .rows = rows,
                 .columns = columns,
                 .from_stride = from.view().row_stride(),
                 .to = to.view().raw(),
                 .to_stride = stride});
      for (std::int64_t c = 0; c < columns; ++c) {
        for (std::int64_t r = 0; r < rows; ++r) {
          ASSERT_EQ(to.get(c * stride + r), from.get(r * (columns + 3) + 2 + c))
              << rows << "x" << columns;
        }
        if (rows < stride) {
          ASSERT_NE(to.get(c * stride + rows), to.get(c * stride + rows)) << "not a NaN any more";
        }
      }
      EXPECT_TRUE(to.fence_intact());
    }
  }
}

}  // namespace
}  // namespace octavo
