#include "model/ops/projected_loss.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/testkit/gradient.h"
#include "tests/testkit/instruction_sets.h"
#include "tests/testkit/tensors.h"

namespace octavo::testkit {
namespace {

constexpr std::int64_t kScratch = 16 << 20;

struct Shape {
  std::int64_t N, V, Vp, D;
  double smoothing = 0.1;
};

/// Every third label is -1; rows of the weight beyond the vocabulary are large, so that they would
/// take all the mass.
struct Problem {
  Problem(const Shape& s, DType type, std::uint64_t seed = 4)
      : shape(s),
        labels({s.N}, DType::i32),
        sums({2}, DType::f64, {3, 5}),
        dx({s.N, s.D}, type),
        log_likelihood({s.N}, statistics_type(type)) {
    RandomStream stream(seed);
    x = TestTensor::random({s.N, s.D}, type, stream);
    weight = TestTensor::random({s.Vp, s.D}, type, stream);
    dweight = TestTensor::random({s.Vp, s.D}, statistics_type(type), stream);
    for (std::int64_t i = s.V * s.D; i < s.Vp * s.D; ++i) weight.set(i, 100);
    for (std::int64_t n = 0; n < s.N; ++n) {
      const auto label = static_cast<double>(stream.below(static_cast<std::uint64_t>(s.V)));
      labels.set(n, n % 3 == 1 ? -1.0 : label);
    }
  }
  ProjectedLossArgs args() const {
    return {.x = x,
            .weight = weight,
            .labels = labels,
            .vocabulary = shape.V,
            .label_smoothing = shape.smoothing,
            .gradient_scale = 0.7};
  }
  void run(Context& ctx) {
    projected_loss(ctx, args(),
                   {.sums = sums, .dx = dx, .dweight = dweight, .log_likelihood = log_likelihood});
  }

  Shape shape;
  TestTensor x, weight, labels, sums, dx, dweight, log_likelihood;
};

/// The definition in float64, from the inputs as stored, adding to what sums and dweight held.
struct Reference {
  std::vector<double> sums, dx, dweight, log_likelihood;
  explicit Reference(const Problem& p)
      : sums(p.sums.values()),
        dx(static_cast<std::size_t>(p.shape.N * p.shape.D), 0),
        dweight(p.dweight.values()),
        log_likelihood(static_cast<std::size_t>(p.shape.N), 0) {
    for (std::int64_t n = 0; n < p.shape.N; ++n) {
      if (p.labels.get(n) >= 0) row(p, n, static_cast<std::int64_t>(p.labels.get(n)));
    }
  }

 private:
  void row(const Problem& p, std::int64_t n, std::int64_t label) {
    const std::int64_t V = p.shape.V, D = p.shape.D;
    const double e = p.shape.smoothing;
    std::vector<double> logits(static_cast<std::size_t>(V), 0);
    double largest = -HUGE_VAL, sum = 0;
    for (std::int64_t v = 0; v < V; ++v) {
      double& logit = logits[static_cast<std::size_t>(v)];
      for (std::int64_t i = 0; i < D; ++i) logit += p.x.get(n * D + i) * p.weight.get(v * D + i);
      largest = std::max(largest, logit);
    }
    for (const double logit : logits) sum += std::exp(logit - largest);
    for (std::int64_t v = 0; v < V; ++v) {
      const double log_p = logits[static_cast<std::size_t>(v)] - largest - std::log(sum);
      const double q = (v == label ? 1 - e : 0) + e / static_cast<double>(V);
      sums[0] -= q * log_p;
      if (v == label) {
        sums[1] -= log_p;
        log_likelihood[static_cast<std::size_t>(n)] = log_p;
      }
      const double g = p.args().gradient_scale * (std::exp(log_p) - q);
      for (std::int64_t i = 0; i < D; ++i) {
        dx[static_cast<std::size_t>(n * D + i)] += g * p.weight.get(v * D + i);
        dweight[static_cast<std::size_t>(v * D + i)] += g * p.x.get(n * D + i);
      }
    }
  }
};

// Nothing, one row, primes, padded vocabularies, more rows than a chunk, one piece, no smoothing.
const std::vector<Shape> kShapes = {
    {.N = 0, .V = 5, .Vp = 8, .D = 3},
    {.N = 1, .V = 17, .Vp = 17, .D = 5},
    {.N = 64, .V = 47, .Vp = 64, .D = 8},
    {.N = 13, .V = 1, .Vp = 4, .D = 3},
    {.N = 7, .V = 1000, .Vp = 1024, .D = 16},
    {.N = 300, .V = 33, .Vp = 40, .D = 7},
    {.N = 64, .V = 47, .Vp = 64, .D = 8, .smoothing = 0},
    {.N = 1040, .V = 9, .Vp = 9, .D = 2},
};

class ProjectedLossKernel : public KernelTest {};

TEST_P(ProjectedLossKernel, AgreesWithTheDefinition) {
  Context ctx(Device::cpu, 1, kScratch);
  const DType statistics = statistics_type(type());
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(fmt::format("N = {}, V = {}", s.N, s.V));
    Problem p(s, type());
    const Reference expected(p);
    p.run(ctx);
    EXPECT_EQ("", mismatch(p.sums, expected.sums,
                           {.relative = type() == DType::f64 ? 1e-12 : 1e-6, .absolute = 0}));
    EXPECT_EQ("", mismatch(p.log_likelihood, expected.log_likelihood, tolerance_of(statistics)));
    EXPECT_EQ("", mismatch(p.dx, expected.dx, tolerance_of(type())));
    // Gradients of logits are rounded to the compute type, sums of them are not.
    EXPECT_EQ("", mismatch(p.dweight, expected.dweight, tolerance_of(type())));
    EXPECT_TRUE(p.sums.fence_intact() && p.dx.fence_intact() && p.dweight.fence_intact());
  }
}

TEST_P(ProjectedLossKernel, WithoutGradientTheLossesAreTheSame) {
  Context ctx(Device::cpu, 1, kScratch);
  for (const Shape& s : kShapes) {
    Problem with(s, type()), without(s, type()), frozen(s, type());
    with.run(ctx);
    projected_loss(ctx, without.args(),
                   {.sums = without.sums, .log_likelihood = without.log_likelihood});
    EXPECT_TRUE(with.sums.same_bytes(without.sums));
    EXPECT_TRUE(with.log_likelihood.same_bytes(without.log_likelihood));
    projected_loss(ctx, frozen.args(), {.sums = frozen.sums, .dx = frozen.dx});
    EXPECT_TRUE(with.sums.same_bytes(frozen.sums));
    EXPECT_TRUE(with.dx.same_bytes(frozen.dx));
  }
}

TEST_P(ProjectedLossKernel, ANanReachesTheSums) {
  Context ctx(Device::cpu, 1, kScratch);
  for (const std::int64_t piece : {0, 16, 39}) {
    Problem p({.N = 3, .V = 40, .Vp = 40, .D = 4}, type());
    p.weight.set(piece * 4, NAN);
    p.run(ctx);
    EXPECT_TRUE(std::isnan(p.sums.get(0)) && std::isnan(p.sums.get(1)));
    EXPECT_TRUE(std::isnan(p.dx.get(0)));
  }
}

TEST_P(ProjectedLossKernel, LargeLogitsDontOverflow) {
  Context ctx(Device::cpu, 1, kScratch);
  Problem p({.N = 20, .V = 50, .Vp = 56, .D = 4}, type());
  for (std::int64_t i = 0; i < 20 * 4; ++i) p.x.set(i, 200 * p.x.get(i));
  const Reference expected(p);
  p.run(ctx);
  EXPECT_EQ("", mismatch(p.sums, expected.sums, {.relative = 1e-5, .absolute = 0}));
}

INSTANTIATE_TEST_SUITE_P(All, ProjectedLossKernel, every_kernel(), kernel_name);

class ProjectedLossGradient : public ::testing::TestWithParam<Shape> {};

TEST_P(ProjectedLossGradient, AgreesWithCentralDifferences) {
  Context ctx(Device::cpu, 2, kScratch);
  Problem p(GetParam(), DType::f64);
  for (std::int64_t i = 0; i < p.weight.view().elements(); ++i) p.dweight.set(i, 0);
  p.run(ctx);
  const auto loss = [&] {
    TestTensor sums = TestTensor::zeros({2}, DType::f64);
    projected_loss(ctx, p.args(), {.sums = sums});
    return p.args().gradient_scale * sums.get(0);
  };
  EXPECT_EQ("", grad_mismatch(loss, {{"x", p.x, p.dx}, {"weight", p.weight, p.dweight}}, 1e-7));
}

INSTANTIATE_TEST_SUITE_P(All, ProjectedLossGradient,
                         ::testing::Values(Shape{.N = 5, .V = 17, .Vp = 19, .D = 3},
                                           Shape{.N = 3, .V = 1, .Vp = 2, .D = 3},
                                           Shape{.N = 20, .V = 5, .Vp = 5, .D = 2},
                                           Shape{.N = 4, .V = 9, .Vp = 9, .D = 2, .smoothing = 0}));

TEST(ProjectedLoss, ThreadsChangeNoLoss) {
  const Shape shape{.N = 1100, .V = 33, .Vp = 40, .D = 7};
  Problem one(shape, DType::f32);
  Context single(Device::cpu, 1, kScratch);
  one.run(single);
  for (const int threads : {2, 3}) {
    Problem many(shape, DType::f32);
    Context ctx(Device::cpu, threads, kScratch);
    many.run(ctx);
    EXPECT_EQ("", mismatch(many.sums, one.sums.values(), {.relative = 1e-7, .absolute = 0}));
    EXPECT_EQ("", mismatch(many.dx, one.dx.values(), tolerance_of(DType::f32)));
    EXPECT_EQ("", mismatch(many.dweight, one.dweight.values(), tolerance_of(DType::f32)));
  }
}

TEST(ProjectedLoss, PlanForeseesScratchAndProducts) {
  for (const DType type : {DType::f32, DType::bf16}) {
    Problem p({.N = 320, .V = 60, .Vp = 64, .D = 16}, type);
    OpList ops;
    Context plan(Device::plan, 2, 0);
    plan.set_recorder(&ops);
    p.run(plan);
    std::int64_t products = 0;
    for (const OpCost& op : ops.ops()) products += op.shape[0] > 0 ? op.flops : 0;
    EXPECT_EQ(3 * 2 * 320 * 64 * 16, products);
    Context ctx(Device::cpu, 2, plan.scratch().high_water());
    const Reference expected(p);
    p.run(ctx);
    EXPECT_EQ("", mismatch(p.dx, expected.dx, tolerance_of(type)));
  }
}

TEST(ProjectedLoss, RefusesWhatDoesNotFit) {
  Context ctx(Device::cpu, 1, kScratch);
  const Shape shape{.N = 4, .V = 6, .Vp = 8, .D = 3};
  const auto refused = [&](auto change) {
    Problem p(shape, DType::f32);
    change(p);
    EXPECT_THROW(p.run(ctx), InternalError);
  };
  refused([](Problem& p) { p.labels.set(0, 6); });
  refused([](Problem& p) { p.labels.set(0, -2); });
  refused([](Problem& p) { p.shape.V = 9; });
  refused([](Problem& p) { p.shape.smoothing = 1; });
  refused([](Problem& p) { p.dx = TestTensor({4, 4}, DType::f32); });
  refused([](Problem& p) { p.dx = {}; });  // dweight alone
  refused([](Problem& p) { p.sums = TestTensor({2}, DType::f32); });
}

}  // namespace
}  // namespace octavo::testkit
