#include "model/ops/top_k.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/testkit/instruction_sets.h"
#include "tests/testkit/tensors.h"

namespace octavo::testkit {
namespace {

struct Best {
  std::vector<double> log_probabilities, ids;
};

// By sorting whole rows in float64.
Best sort_rows(const Tensor& logits, std::int64_t V, std::int64_t k,
               const std::vector<std::int32_t>& banned) {
  Best best;
  const std::vector<double> all = values_of(logits);
  for (std::int64_t r = 0; r < logits.dim(0); ++r) {
    const double* row = all.data() + r * logits.dim(1);
    const double largest = *std::max_element(row, row + V);
    double sum = 0;
    for (std::int64_t v = 0; v < V; ++v) sum += std::exp(row[v] - largest);
    std::vector<std::int32_t> order(static_cast<std::size_t>(V));
    std::iota(order.begin(), order.end(), 0);
    std::erase_if(order, [&](std::int32_t id) {
      return std::find(banned.begin(), banned.end(), id) != banned.end();
    });
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return row[a] > row[b]; });
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int32_t id = order[static_cast<std::size_t>(i)];
      best.ids.push_back(id);
      best.log_probabilities.push_back(row[id] - largest - std::log(sum));
    }
  }
  return best;
}

class TopKKernel : public KernelTest {};

// Logits on a coarse grid, so that ties are many; columns beyond the vocabulary are NaN.
TEST_P(TopKKernel, AgreesWithSorting) {
  Context ctx(Device::cpu, 1, 1 << 20);
  const DType statistics = statistics_type(type());
  RandomStream stream(7);
  for (const std::int64_t V : {1, 2, 15, 16, 17, 63, 64, 65, 129, 500, 1031, 5000}) {
    for (const std::int64_t k : {1, 2, 8, 40, 500}) {
      std::vector<std::int32_t> banned;
      if (V > 3) banned = {0, static_cast<std::int32_t>(V - 1), 2};
      if (k > V - static_cast<std::int64_t>(banned.size())) continue;
      SCOPED_TRACE(fmt::format("V = {}, k = {}", V, k));
      const std::int64_t R = 3;
      TestTensor logits({R, V + 5}, type());
      for (std::int64_t r = 0; r < R; ++r) {
        for (std::int64_t v = 0; v < V; ++v) {
          logits.set(r * (V + 5) + v, r == 0 ? 1.0 : std::round(4 * stream.normal()) / 2);
        }
      }
      logits.set(0, 30);  // banned where there is room, but takes nearly all the mass
      TestTensor log_probabilities({R, k}, statistics), ids({R, k}, DType::i32);
      top_k(ctx, {.logits = logits, .vocabulary = V, .k = k, .banned = banned}, log_probabilities,
            ids);
      const Best expected = sort_rows(logits, V, k, banned);
      EXPECT_EQ(expected.ids, ids.values());
      EXPECT_EQ("",
                mismatch(log_probabilities, expected.log_probabilities, tolerance_of(statistics)));
      EXPECT_TRUE(ids.fence_intact() && log_probabilities.fence_intact());
    }
  }
}

TEST_P(TopKKernel, RefusesWhatIsNotANumber) {
  Context ctx(Device::cpu, 1, 1 << 20);
  TestTensor log_probabilities({1, 2}, statistics_type(type())), ids({1, 2}, DType::i32);
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    for (const std::int64_t place : {0, 70, 299}) {
      TestTensor logits = TestTensor::zeros({1, 300}, type());
      logits.set(place, bad);
      EXPECT_THROW(
          top_k(ctx, {.logits = logits, .vocabulary = 300, .k = 2}, log_probabilities, ids),
          UserError);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, TopKKernel, every_kernel(), kernel_name);

TEST(TopK, MinusInfinityHasNoMassAndComesLast) {
  Context ctx(Device::cpu, 1, 1 << 20);
  TestTensor logits({1, 3}, DType::f32, {-INFINITY, 0, -INFINITY});
  TestTensor log_probabilities({1, 3}, DType::f32), ids({1, 3}, DType::i32);
  top_k(ctx, {.logits = logits, .vocabulary = 3, .k = 3}, log_probabilities, ids);
  EXPECT_EQ((std::vector<double>{1, 0, 2}), ids.values());
  EXPECT_EQ((std::vector<double>{0, -INFINITY, -INFINITY}), log_probabilities.values());
}

TEST(TopK, ThreadsDontChangeAByte) {
  RandomStream stream(1);
  const TestTensor logits = TestTensor::random({40, 2000}, DType::f32, stream);
  TestTensor one({40, 5}, DType::f32), one_ids({40, 5}, DType::i32);
  Context single(Device::cpu, 1, 1 << 20);
  top_k(single, {.logits = logits, .vocabulary = 2000, .k = 5}, one, one_ids);
  for (const int threads : {2, 3, 9}) {
    TestTensor many({40, 5}, DType::f32), ids({40, 5}, DType::i32);
    Context ctx(Device::cpu, threads, 1 << 20);
    top_k(ctx, {.logits = logits, .vocabulary = 2000, .k = 5}, many, ids);
    EXPECT_TRUE(one.same_bytes(many) && one_ids.same_bytes(ids));
  }
}

TEST(TopK, NoRowsAndWrongShapes) {
  Context ctx(Device::cpu, 2, 1 << 20);
  const TestTensor none({0, 10}, DType::f32), logits = TestTensor::zeros({2, 10}, DType::f32);
  TestTensor empty({0, 2}, DType::f32), empty_ids({0, 2}, DType::i32);
  top_k(ctx, {.logits = none, .vocabulary = 10, .k = 2}, empty, empty_ids);
  TestTensor values({2, 2}, DType::f32), ids({2, 2}, DType::i32), wide({2, 3}, DType::f32);
  const std::vector<std::int32_t> banned{1, 2, 3};
  const auto call = [&](std::int64_t V, std::int64_t k, const Tensor& to) {
    top_k(ctx, {.logits = logits, .vocabulary = V, .k = k, .banned = banned}, to, ids);
  };
  call(10, 2, values);
  EXPECT_THROW(call(11, 2, values), InternalError);
  EXPECT_THROW(call(4, 2, values), InternalError);
  EXPECT_THROW(call(10, 0, values), InternalError);
  EXPECT_THROW(call(10, 2, wide), InternalError);
}

TEST(TopK, PlanForeseesScratch) {
  Context plan(Device::plan, 2, 0);
  const TestTensor logits = TestTensor::zeros({4, 300}, DType::bf16);
  TestTensor values({4, 9}, DType::f32), ids({4, 9}, DType::i32);
  const TopKArgs args{.logits = logits, .vocabulary = 300, .k = 9};
  top_k(plan, args, values, ids);
  Context ctx(Device::cpu, 2, plan.scratch().high_water());
  top_k(ctx, args, values, ids);
  EXPECT_EQ(0, ids.get(0));
}

}  // namespace
}  // namespace octavo::testkit
