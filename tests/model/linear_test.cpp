#include "model/ops/linear.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/token_batch.h"
#include "model/ops/column_sums.h"
#include "model/ops/product_cpu.h"
#include "oneapi/dnnl/dnnl.h"
#include "tests/testkit/gradient.h"
#include "tests/testkit/instruction_sets.h"
#include "tests/testkit/tensors.h"

namespace octavo {
namespace {

using testkit::TestTensor;

constexpr std::int64_t kScratch = 64 << 20;

struct Shape {
  std::int64_t N, O, I;
};
// Nothing, one, primes, multiples of vectors, enough rows for the packed weight.
const std::vector<Shape> kShapes = {{0, 3, 2},    {1, 1, 1},    {2, 0, 3},      {3, 2, 0},
                                    {1, 17, 5},   {7, 13, 11},  {64, 48, 32},   {31, 1, 37},
                                    {257, 19, 8}, {300, 67, 1}, {320, 96, 128}, {257, 131, 61}};

struct Problem {
  TestTensor x, weight, bias, dy, dx, dweight, dbias;
  Problem(const Shape& s, DType type, std::uint64_t seed) {
    RandomStream random(seed);
    x = TestTensor::random({s.N, s.I}, type, random);
    weight = TestTensor::random({s.O, s.I}, type, random);
    bias = TestTensor::random({s.O}, type, random);
    dy = TestTensor::random({s.N, s.O}, type, random);
    dx = TestTensor::random({s.N, s.I}, type, random);
    dweight = TestTensor::random({s.O, s.I}, statistics_type(type), random);
    dbias = TestTensor::random({s.O}, statistics_type(type), random);
  }
  LinearArgs args() const { return {.x = x, .weight = weight, .bias = bias}; }
};

// The definition, in float64, from the same rounded inputs.
struct Reference {
  std::vector<double> y, dx, dweight, dbias;
  Reference(const Problem& p, const Shape& s, bool add_to_dx)
      : y(static_cast<std::size_t>(s.N * s.O)),
        dx(p.dx.values()),
        dweight(p.dweight.values()),
        dbias(p.dbias.values()) {
    if (!add_to_dx) std::fill(dx.begin(), dx.end(), 0.0);
    for (std::int64_t n = 0; n < s.N; ++n) {
      for (std::int64_t o = 0; o < s.O; ++o) {
        const double dy = p.dy.get(n * s.O + o);
        double sum = p.bias.get(o);
        for (std::int64_t i = 0; i < s.I; ++i) {
          sum += p.x.get(n * s.I + i) * p.weight.get(o * s.I + i);
          dx[static_cast<std::size_t>(n * s.I + i)] += dy * p.weight.get(o * s.I + i);
          dweight[static_cast<std::size_t>(o * s.I + i)] += dy * p.x.get(n * s.I + i);
        }
        y[static_cast<std::size_t>(n * s.O + o)] = sum;
        dbias[static_cast<std::size_t>(o)] += dy;
      }
    }
  }
};

class LinearKernel : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(All, LinearKernel, ::testing::Values(DType::f32, DType::bf16, DType::f64),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(LinearKernel, AgreesWithReferenceAtEveryShape) {
  const DType type = GetParam();
  for (const int threads : {1, 2, 5}) {
    Context ctx(Device::cpu, threads, kScratch);
    for (const Shape& s : kShapes) {
      for (const bool add : {false, true}) {
        const Problem p(s, type, 7);
        const Reference r(p, s, add);
        TestTensor y({s.N, s.O}, type);
        linear_forward(ctx, p.args(), y);
        linear_backward(ctx, p.args(), p.dy,
                        {.dx = p.dx, .add_to_dx = add, .dweight = p.dweight, .dbias = p.dbias});
        const std::string where = testing::PrintToString(s.N) + "x" + testing::PrintToString(s.O) +
                                  "x" + testing::PrintToString(s.I);
        // Sums of up to 320 terms of size 1.
        const auto tolerance = testkit::tolerance_of(type, 5);
        const auto sums = testkit::tolerance_of(statistics_type(type), 5);
        EXPECT_EQ("", testkit::mismatch(y, r.y, tolerance)) << where;
        EXPECT_EQ("", testkit::mismatch(p.dx, r.dx, tolerance)) << where << " add " << add;
        EXPECT_EQ("", testkit::mismatch(p.dweight, r.dweight, sums)) << where;
        EXPECT_EQ("", testkit::mismatch(p.dbias, r.dbias, sums)) << where;
        EXPECT_TRUE(y.fence_intact() && p.dx.fence_intact() && p.dweight.fence_intact() &&
                    p.dbias.fence_intact())
            << where;
      }
    }
    EXPECT_EQ(ctx.scratch().used(), 0);
  }
}

TEST_P(LinearKernel, RowsMayBeApart) {
  const DType type = GetParam();
  Context ctx(Device::cpu, 2, kScratch);
  for (const std::int64_t N : {5, 300}) {
    const Shape s{N, 6, 10};
    RandomStream random(3);
    const TestTensor wide_x = TestTensor::random({N, 25}, type, random);
    const TestTensor wide_dy = TestTensor::random({N, 17}, type, random);
    Problem p(s, type, 4);
    const Tensor x = wide_x.view().columns(3, 10), dy = wide_dy.view().columns(11, 6);
    p.x.set(testkit::values_of(x));
    p.dy.set(testkit::values_of(dy));
    TestTensor wide_y = TestTensor::zeros({N, 20}, type);
    const Reference r(p, s, false);
    const LinearArgs args{.x = x, .weight = p.weight, .bias = p.bias};
    linear_forward(ctx, args, wide_y.view().columns(7, 6));
    linear_backward(ctx, args, dy, {.dx = p.dx, .dweight = p.dweight, .dbias = p.dbias});
    const auto tolerance = testkit::tolerance_of(type, 5);
    EXPECT_EQ("", testkit::mismatch(wide_y.view().columns(7, 6), r.y, tolerance));
    EXPECT_EQ("", testkit::mismatch(p.dx, r.dx, tolerance));
    EXPECT_EQ("", testkit::mismatch(p.dweight, r.dweight,
                                    testkit::tolerance_of(statistics_type(type), 5)));
    for (const std::int64_t beside : {6, 13}) {
      EXPECT_EQ("", testkit::mismatch(wide_y.view().columns(beside, 1),
                                      std::vector<double>(static_cast<std::size_t>(N)), tolerance))
          << "column " << beside << " was written";
    }
  }
}

TEST_P(LinearKernel, RunsTwiceToTheSameBytes) {
  Context ctx(Device::cpu, 2, kScratch);
  const Shape s{331, 70, 50};
  const Problem p(s, GetParam(), 5), q(s, GetParam(), 5);
  TestTensor y({s.N, s.O}, GetParam()), z({s.N, s.O}, GetParam());
  linear_forward(ctx, p.args(), y);
  linear_forward(ctx, q.args(), z);
  linear_backward(ctx, p.args(), p.dy, {.dx = p.dx, .dweight = p.dweight, .dbias = p.dbias});
  linear_backward(ctx, q.args(), q.dy, {.dx = q.dx, .dweight = q.dweight, .dbias = q.dbias});
  EXPECT_TRUE(y.same_bytes(z) && p.dx.same_bytes(q.dx) && p.dweight.same_bytes(q.dweight) &&
              p.dbias.same_bytes(q.dbias));
}

TEST(LinearGradient, AgreesWithCentralDifferences) {
  Context ctx(Device::cpu, 2, kScratch);
  for (const Shape& s : {Shape{1, 1, 1}, Shape{5, 3, 7}, Shape{2, 11, 1}}) {
    const Problem p(s, DType::f64, 6);
    TestTensor y({s.N, s.O}, DType::f64);
    TestTensor dweight = TestTensor::zeros({s.O, s.I}, DType::f64);
    TestTensor dbias = TestTensor::zeros({s.O}, DType::f64);
    const auto loss = [&] {
      linear_forward(ctx, p.args(), y);
      return testkit::weighted_sum(p.dy, y);
    };
    linear_backward(ctx, p.args(), p.dy, {.dx = p.dx, .dweight = dweight, .dbias = dbias});
    EXPECT_EQ("",
              testkit::grad_mismatch(
                  loss, {{"x", p.x, p.dx}, {"weight", p.weight, dweight}, {"bias", p.bias, dbias}},
                  1e-9));
  }
}

TEST(Linear, TilesCoverTheProductWithAtMostOnePerThread) {
  for (const int threads : {1, 2, 3, 7, 16}) {
    for (const std::int64_t m : {1, 15, 64, 100, 1536, 5000}) {
      for (const std::int64_t n : {1, 40, 256, 8000}) {
        const TileGrid grid = choose_tiles(m, n, 256, threads);
        ASSERT_TRUE(1 <= grid.rows && grid.rows <= m && 1 <= grid.columns && grid.columns <= n);
        const std::int64_t down = (m + grid.rows - 1) / grid.rows;
        const std::int64_t across = (n + grid.columns - 1) / grid.columns;
        EXPECT_LE(down * across, threads) << m << "x" << n;
        if (m * n > 1000000) {
          EXPECT_GE(2 * down * across, threads) << m << "x" << n;
        }
      }
    }
  }
  const TileGrid tall = choose_tiles(4096, 256, 256, 2), flat = choose_tiles(16, 8000, 256, 2);
  EXPECT_EQ(tall.rows, 2048);
  EXPECT_EQ(tall.columns, 256);
  EXPECT_EQ(flat.rows, 16);
  EXPECT_EQ(flat.columns, 4000);
  EXPECT_EQ(choose_tiles(8, 64, 64, 2).columns, 64) << "too small to share";
}

TEST(Linear, PiecesOfATransposedMatrixStayInCacheAndApart) {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const std::int64_t k : {1, 64, 1000, 1024, 1536, 4096}) {
      const Product p{.type = type,
                      .c_type = DType::f32,
                      .m = 2048,
                      .n = 512,
                      .k = k,
                      .a_row = 1,
                      .a_column = 2048,
                      .b_row = 512,
                      .b_column = 1,
                      .c_row = 512,
                      .accumulate = true};
      const TilePieces pieces = choose_pieces(p, {1024, 512});
      const auto row_bytes = pieces.depth * static_cast<std::int64_t>(bytes_of(type));
      EXPECT_LE(pieces.rows * row_bytes, 1 << 19);
      EXPECT_GE(pieces.rows, 64);
      if (pieces.depth < k) {
        EXPECT_EQ(row_bytes % 128, 64) << "rows must not lie a power of two apart";
      }
    }
  }
}

TEST(Linear, PlanMeasuresTheScratchThatTheRunNeeds) {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const Shape& s : {Shape{64, 256, 96}, Shape{1536, 96, 256}}) {
      Context plan(Device::plan, 2, 0);
      OpList list;
      plan.set_recorder(&list);
      const LinearArgs in{.x = Tensor(nullptr, {s.N, s.I}, type),
                          .weight = Tensor(nullptr, {s.O, s.I}, type),
                          .bias = Tensor(nullptr, {s.O}, type)};
      const Tensor y(nullptr, {s.N, s.O}, type);
      linear_forward(plan, in, y);
      linear_backward(plan, in, y,
                      {.dx = in.x,
                       .dweight = Tensor(nullptr, {s.O, s.I}, DType::f32),
                       .dbias = Tensor(nullptr, {s.O}, DType::f32)});
      ASSERT_EQ(list.ops().size(), 4u);
      EXPECT_EQ(list.flops(), 3 * 2 * s.N * s.O * s.I + s.N * s.O);
      EXPECT_EQ(list.ops()[1].shape, (std::array<std::int64_t, 3>{s.N, s.O, s.I}));
      EXPECT_GT(plan.scratch().high_water(), 0);

      Context ctx(Device::cpu, 2, plan.scratch().high_water());
      const Problem p(s, type, 8);
      TestTensor out({s.N, s.O}, type);
      linear_forward(ctx, p.args(), out);
      linear_backward(ctx, p.args(), p.dy, {.dx = p.dx, .dweight = p.dweight, .dbias = p.dbias});
      EXPECT_EQ(ctx.scratch().high_water(), plan.scratch().high_water());
    }
  }
}

TEST(Linear, RefusesShapesAndTypesThatDisagree) {
  Context ctx(Device::cpu, 1, kScratch);
  const TestTensor x({4, 3}, DType::f32), weight({5, 3}, DType::f32), y({4, 5}, DType::f32);
  const TestTensor other({4, 4}, DType::f32), half({5, 3}, DType::bf16), bias({4}, DType::f32);
  EXPECT_THROW(linear_forward(ctx, {.x = other, .weight = weight}, y), InternalError);
  EXPECT_THROW(linear_forward(ctx, {.x = x, .weight = half}, y), InternalError);
  EXPECT_THROW(linear_forward(ctx, {.x = x, .weight = weight}, other), InternalError);
  EXPECT_THROW(linear_forward(ctx, {.x = x, .weight = weight, .bias = bias}, y), InternalError);
  EXPECT_THROW(linear_backward(ctx, {.x = x, .weight = weight}, y, {.dx = other}), InternalError);
  EXPECT_THROW(linear_backward(ctx, {.x = x, .weight = weight}, y, {.dweight = half}),
               InternalError);
}

// In a process of its own: oneDNN reads the limit before its first product only.
TEST(LinearDeathTest, SaysWhatToDoWhereTheProcessorHasNoBf16) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto without_avx512 = [] {
    dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    Context ctx(Device::cpu, 1, kScratch);
    const Problem p({4, 5, 3}, DType::bf16, 9);
    TestTensor y({4, 5}, DType::bf16);
    try {
      linear_forward(ctx, p.args(), y);
    } catch (const UserError& e) {
      std::fputs(e.what(), stderr);
      std::exit(2);
    }
    std::exit(0);
  };
  EXPECT_EXIT(without_avx512(), ::testing::ExitedWithCode(2), "set precision: float32");
}

class ColumnSums : public testkit::KernelTest {};
INSTANTIATE_TEST_SUITE_P(All, ColumnSums, testkit::every_kernel(), testkit::kernel_name);

TEST_P(ColumnSums, AgreeWithReferenceAndDoNotDependOnThreads) {
  for (const std::int64_t N : {0, 1, 63, 64, 65, 200}) {
    for (const std::int64_t O : {0, 1, 31, 64, 67, 515}) {
      RandomStream random(1);
      const TestTensor x = TestTensor::random({N, O + 2}, type(), random);
      const Tensor inner = x.view().columns(1, O);
      const TestTensor start = TestTensor::random({O}, statistics_type(type()), random);
      std::vector<double> expected = start.values();
      const std::vector<double> values = testkit::values_of(inner);
      for (std::size_t i = 0; i < values.size(); ++i) {
        expected[i % static_cast<std::size_t>(O)] += values[i];
      }
      TestTensor sums[2] = {start, start};
      for (const int threads : {1, 2}) {
        Context ctx(Device::cpu, threads, 1 << 20);
        add_column_sums(ctx, inner, sums[threads - 1]);
      }
      EXPECT_EQ("", testkit::mismatch(sums[0], expected,
                                      testkit::tolerance_of(statistics_type(type()), 5)))
          << N << "x" << O;
      EXPECT_TRUE(sums[0].same_bytes(sums[1]));
      EXPECT_TRUE(sums[0].fence_intact());
    }
  }
}

}  // namespace
}  // namespace octavo
