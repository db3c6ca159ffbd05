#include "model/ops/embedding.h"

#include <gtest/gtest.h>

#include "tests/testkit/dropout.h"
#include "tests/testkit/gradient.h"
#include "tests/testkit/instruction_sets.h"
#include "tests/testkit/tensors.h"

namespace octavo {
namespace {

using testkit::TestTensor;

constexpr std::int64_t kScratch = 1 << 20;

// Sentences of the given lengths over V pieces; piece 1 is rare, piece 2 frequent.
struct Problem {
  PackedTokensBuilder builder;
  PackedTokens tokens;
  TestTensor table, positions, dy;
  Dropout dropout;

  Problem(const std::vector<std::int64_t>& lengths, std::int64_t V, std::int64_t D, DType type,
          double probability) {
    RandomStream random(21);
    std::int64_t ordinal = (std::int64_t{3} << 32) + 5, longest = 1;
    for (const std::int64_t length : lengths) {
      std::vector<std::int32_t> ids;
      for (std::int64_t i = 0; i < length; ++i) {
        const auto id = random.below(static_cast<std::uint64_t>(V));
        ids.push_back(static_cast<std::int32_t>(i % 3 == 0 ? std::min<std::int64_t>(2, V - 1)
                                                           : static_cast<std::int64_t>(id)));
      }
      builder.add(ids, ordinal);
      ordinal += 2 * length;
      longest = std::max(longest, length);
    }
    tokens = builder.finish();
    table = TestTensor::random({V, D}, type, random);
    positions = TestTensor::random({longest, D}, statistics_type(type), random);
    dy = TestTensor::random({tokens.rows, D}, type, random);
    dropout = {.probability = probability, .key = 8, .ordinals = {}};
    if (dropout.on()) dropout.ordinals = tokens.ordinals;
  }
  EmbeddingArgs args(bool with_positions, double scale) const {
    return {.tokens = tokens,
            .table = table,
            .positions = with_positions ? positions.view() : Tensor(),
            .scale = scale,
            .dropout = dropout};
  }
  std::int64_t id(std::int64_t n) const { return tokens.ids.data<std::int32_t>()[n]; }
  std::int64_t place(std::int64_t n) const { return tokens.positions.data<std::int32_t>()[n]; }
  double factor(std::int64_t n, std::int64_t d) const {
    return testkit::dropout_factor(dropout, tokens.ordinals.data<std::int64_t>()[n], d);
  }
};

struct Case {
  std::vector<std::int64_t> lengths;
  std::int64_t V, D;
};
const std::vector<Case> kCases = {
    {{}, 3, 4}, {{1}, 1, 1}, {{3, 1, 5}, 7, 17}, {{64}, 5, 16}, {{100, 31}, 11, 67}};

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

class EmbeddingKernel : public testkit::KernelTest {};
INSTANTIATE_TEST_SUITE_P(All, EmbeddingKernel, testkit::every_kernel(), testkit::kernel_name);

TEST_P(EmbeddingKernel, ForwardAgreesWithReference) {
  Context ctx(Device::cpu, 2, kScratch);
  for (const Case& c : kCases) {
    for (const double probability : {0.0, 0.2}) {
      for (const bool with_positions : {false, true}) {
        const Problem p(c.lengths, c.V, c.D, type(), probability);
        TestTensor y({p.tokens.rows, c.D}, type());
        embedding_forward(ctx, p.args(with_positions, 1.5), y);
        std::vector<double> expected(at(p.tokens.rows * c.D));
        for (std::int64_t n = 0; n < p.tokens.tokens; ++n) {
          for (std::int64_t d = 0; d < c.D; ++d) {
            double v = 1.5 * p.table.get(p.id(n) * c.D + d);
            if (with_positions) v += p.positions.get(p.place(n) * c.D + d);
            expected[at(n * c.D + d)] = v * p.factor(n, d);
          }
        }
        EXPECT_EQ("", testkit::mismatch(y, expected, testkit::tolerance_of(type(), 0.1)));
        EXPECT_TRUE(y.fence_intact());
      }
    }
  }
}

TEST_P(EmbeddingKernel, BackwardAgreesWithReferenceForAnyNumberOfThreads) {
  for (const Case& c : kCases) {
    for (const double probability : {0.0, 0.2}) {
      const Problem p(c.lengths, c.V, c.D, type(), probability);
      const DType statistics = statistics_type(type());
      RandomStream random(2);
      const TestTensor start = TestTensor::random({c.V, c.D}, statistics, random);
      const TestTensor start_places =
          TestTensor::random({p.positions.view().dim(0), c.D}, statistics, random);
      std::vector<double> expected = start.values(), places = start_places.values();
      for (std::int64_t n = 0; n < p.tokens.tokens; ++n) {
        for (std::int64_t d = 0; d < c.D; ++d) {
          const double masked = p.dy.get(n * c.D + d) * p.factor(n, d);
          expected[at(p.id(n) * c.D + d)] += 1.5 * masked;
          places[at(p.place(n) * c.D + d)] += masked;
        }
      }
      TestTensor dtable[2] = {start, start}, dpositions[2] = {start_places, start_places};
      for (const int threads : {1, 2}) {
        Context ctx(Device::cpu, threads, kScratch);
        embedding_backward(ctx, p.args(true, 1.5), p.dy, dtable[threads - 1],
                           dpositions[threads - 1]);
      }
      const auto tolerance = testkit::tolerance_of(statistics, 10);
      EXPECT_EQ("", testkit::mismatch(dtable[0], expected, tolerance));
      EXPECT_EQ("", testkit::mismatch(dpositions[0], places, tolerance));
      EXPECT_TRUE(dtable[0].same_bytes(dtable[1]) && dpositions[0].same_bytes(dpositions[1]));
      EXPECT_TRUE(dtable[0].fence_intact() && dpositions[0].fence_intact());
    }
  }
}

TEST(Embedding, ManyTokensAreCutAtKeys) {
  // Enough work for two threads, and one piece that owns more than half of it.
  const Problem p({9000, 3000}, 50, 16, DType::f32, 0);
  const TestTensor zeros = TestTensor::zeros({50, 16}, DType::f32);
  TestTensor sums[2] = {zeros, zeros};
  for (const int threads : {1, 2}) {
    Context ctx(Device::cpu, threads, kScratch);
    embedding_backward(ctx, p.args(false, 1), p.dy, sums[threads - 1], {});
  }
  EXPECT_TRUE(sums[0].same_bytes(sums[1]));
  EXPECT_FALSE(sums[0].same_bytes(zeros));
}

TEST(EmbeddingGradient, AgreesWithCentralDifferences) {
  Context ctx(Device::cpu, 2, kScratch);
  for (const Case& c : kCases) {
    const Problem p(c.lengths, c.V, c.D, DType::f64, 0.2);
    TestTensor y({p.tokens.rows, c.D}, DType::f64);
    TestTensor dtable = TestTensor::zeros({c.V, c.D}, DType::f64);
    TestTensor dpositions = TestTensor::zeros({p.positions.view().dim(0), c.D}, DType::f64);
    const auto loss = [&] {
      embedding_forward(ctx, p.args(true, 0.7), y);
      return testkit::weighted_sum(p.dy, y);
    };
    embedding_backward(ctx, p.args(true, 0.7), p.dy, dtable, dpositions);
    EXPECT_EQ(
        "", testkit::grad_mismatch(
                loss, {{"table", p.table, dtable}, {"positions", p.positions, dpositions}}, 1e-8));
  }
}

TEST(Embedding, RefusesIdsPositionsAndShapesOutOfRange) {
  Context ctx(Device::cpu, 1, kScratch);
  Problem p({3, 4}, 5, 8, DType::f32, 0);
  TestTensor y({p.tokens.rows, 8}, DType::f32), wide({p.tokens.rows, 9}, DType::f32);
  EXPECT_THROW(embedding_forward(ctx, p.args(false, 1), wide), InternalError);
  for (const std::int32_t bad : {5, -1}) {
    p.tokens.ids.data<std::int32_t>()[1] = bad;
    EXPECT_THROW(embedding_forward(ctx, p.args(false, 1), y), InternalError);
    EXPECT_THROW(embedding_backward(ctx, p.args(false, 1), p.dy, p.table, {}), InternalError);
  }
  p.tokens.ids.data<std::int32_t>()[1] = 0;
  p.tokens.positions.data<std::int32_t>()[1] = 4;
  EXPECT_THROW(embedding_forward(ctx, p.args(true, 1), y), InternalError);
  EXPECT_NO_THROW(embedding_forward(ctx, p.args(false, 1), y));
}

TEST(Embedding, PlanMeasuresItsScratchWithoutData) {
  Context ctx(Device::plan, 1, 0);
  OpList list;
  ctx.set_recorder(&list);
  const TokenBatch batch = planned_batch(3, 7, 9);
  const Tensor table(nullptr, {100, 8}, DType::bf16), dtable(nullptr, {100, 8}, DType::f32);
  const Tensor y(nullptr, {64, 8}, DType::bf16);
  embedding_forward(ctx, {.tokens = batch.source, .table = table}, y);
  embedding_backward(ctx, {.tokens = batch.source, .table = table}, y, dtable, {});
  EXPECT_EQ(ctx.scratch().high_water(), round_up(101 * 4, 64) + round_up(21 * 4, 64));
  ASSERT_EQ(list.ops().size(), 2u);
  EXPECT_EQ(list.ops()[0].bytes, 21 * 8 * 2 + 64 * 8 * 2);
}

}  // namespace
}  // namespace octavo
