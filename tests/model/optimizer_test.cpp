#include "model/ops/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/testkit/instruction_sets.h"
#include "tests/testkit/tensors.h"

namespace octavo {
namespace {

using testkit::TestTensor;

constexpr std::int64_t kScratch = 1 << 20;
const double kInfinity = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

// f32 and f64 for every instruction set: flat buffers are never bf16.
class OptimizerKernel : public testkit::KernelTest {};
INSTANTIATE_TEST_SUITE_P(All, OptimizerKernel,
                         ::testing::Combine(::testing::ValuesIn(testkit::instruction_sets()),
                                            ::testing::Values(DType::f32, DType::f64)),
                         testkit::kernel_name);

std::vector<double> norm_of(const TestTensor& gradient, const std::vector<ParameterRun>& runs,
                            double clip, int threads = 2) {
  Context ctx(Device::cpu, threads, kScratch);
  const TestTensor control({3}, DType::f64);
  gradient_norm(ctx, gradient, runs, clip, control);
  return control.values();
}

TEST_P(OptimizerKernel, NormAgreesWithReference) {
  RandomStream random(1);
  for (const std::int64_t P : {0, 1, 17, 4095, 4096, 4097, 50021}) {
    const TestTensor g = TestTensor::random({P}, type(), random);
    const std::vector<ParameterRun> all = {{.begin = 0, .end = P}};
    const std::vector<ParameterRun> some = {{.begin = P / 7, .end = P / 3},
                                            {.begin = P / 2, .end = P - P / 9}};
    for (const auto& runs : {all, some, std::vector<ParameterRun>{}}) {
      double sum = 0;
      for (const ParameterRun& run : runs) {
        for (std::int64_t i = run.begin; i < run.end; ++i) sum += g.get(i) * g.get(i);
      }
      const std::vector<double> control = norm_of(g, runs, 0);
      EXPECT_NEAR(control[0], std::sqrt(sum), 1e-12 * std::sqrt(sum)) << P;
      EXPECT_EQ(control[1], 1);
      EXPECT_EQ(control[2], 1);
    }
  }
}

TEST_P(OptimizerKernel, NormDependsNeitherOnThreadsNorOnHowRunsAreCut) {
  RandomStream random(2);
  const std::int64_t P = 100003;
  const TestTensor g = TestTensor::random({P}, type(), random);
  const auto whole = norm_of(g, {{.begin = 5, .end = P - 3}}, 1, 1);
  std::vector<ParameterRun> pieces;
  for (std::int64_t at = 5; at < P - 3;) {
    const std::int64_t end =
        std::min(P - 3, at + 1 + static_cast<std::int64_t>(random.below(9000)));
    pieces.push_back({.begin = at, .end = end});
    at = end;
  }
  EXPECT_EQ(norm_of(g, pieces, 1, 2), whole);
  EXPECT_EQ(norm_of(g, {{.begin = 5, .end = P - 3}}, 1, 2), whole);
}

TEST_P(OptimizerKernel, NormDecidesClippingAndSkipping) {
  TestTensor g({3}, type(), {3, 0, 4});
  const std::vector<ParameterRun> all = {{.begin = 0, .end = 3}};
  EXPECT_EQ(norm_of(g, all, 0), (std::vector<double>{5, 1, 1}));
  EXPECT_EQ(norm_of(g, all, 10), (std::vector<double>{5, 1, 1}));
  EXPECT_EQ(norm_of(g, all, 2), (std::vector<double>{5, 0.4, 1}));
  for (const double bad : {kInfinity, -kInfinity, kNaN}) {
    g.set(1, bad);
    EXPECT_EQ(norm_of(g, all, 2)[2], 0);
    // A frozen parameter's gradient is nobody's business.
    EXPECT_EQ(norm_of(g, {{.begin = 0, .end = 1}, {.begin = 2, .end = 3}}, 0)[2], 1);
  }
}

struct AdamProblem {
  TestTensor master, gradient, first, second, weights, control;
  std::vector<ParameterRun> runs;
  AdamProblem(std::int64_t P, DType type) {
    RandomStream random(3);
    master = TestTensor::random({P}, type, random);
    gradient = TestTensor::random({P}, type, random);
    first = TestTensor::random({P}, type, random);
    second = TestTensor::random({P}, type, random);
    for (std::int64_t i = 0; i < P; ++i) second.set(i, std::abs(second.get(i)));
    weights = TestTensor::zeros({P}, DType::bf16);
    control = TestTensor({3}, DType::f64, {7, 0.25, 1});
    runs = {{.begin = P / 10, .end = P / 2, .weight_decay = 0.1, .rate_scale = 0.5},
            {.begin = P / 2, .end = P}};
  }
  AdamArgs args() const {
    return {.master = master,
            .gradient = gradient,
            .first = first,
            .second = second,
            .weights = master.view().dtype() == DType::f32 ? weights.view() : Tensor(),
            .runs = runs,
            .control = control,
            .rate = 0.01,
            .beta1 = 0.9,
            .beta2 = 0.98,
            .epsilon = 1e-6,
            .count = 3};
  }
};

TEST_P(OptimizerKernel, AdamAgreesWithReference) {
  for (const std::int64_t P : {1, 17, 4096, 20011}) {
    const AdamProblem before(P, type()), p(P, type());
    Context ctx(Device::cpu, 2, kScratch);
    adam(ctx, p.args());
    std::vector<double> w = before.master.values(), m = before.first.values();
    std::vector<double> v = before.second.values();
    for (const ParameterRun& run : p.runs) {
      for (auto i = static_cast<std::size_t>(run.begin); i < static_cast<std::size_t>(run.end);
           ++i) {
        const double g = 0.25 * before.gradient.get(static_cast<std::int64_t>(i));
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.98 * v[i] + 0.02 * g * g;
        const double direction =
            m[i] / (1 - std::pow(0.9, 3)) / (std::sqrt(v[i] / (1 - std::pow(0.98, 3))) + 1e-6);
        w[i] -= 0.01 * run.rate_scale * (direction + run.weight_decay * w[i]);
      }
    }
    const auto tolerance = testkit::tolerance_of(type());
    EXPECT_EQ("", testkit::mismatch(p.master, w, tolerance)) << P;
    EXPECT_EQ("", testkit::mismatch(p.first, m, tolerance)) << P;
    EXPECT_EQ("", testkit::mismatch(p.second, v, tolerance)) << P;
    EXPECT_TRUE(p.gradient.same_bytes(before.gradient));
    for (const std::int64_t frozen : {std::int64_t{0}, P / 10 - 1}) {
      if (frozen < P / 10) {
        EXPECT_EQ(p.master.get(frozen), before.master.get(frozen));
      }
    }
    if (type() == DType::f32) {
      TestTensor rounded = p.master.as(DType::bf16);
      for (std::int64_t i = 0; i < P / 10; ++i) rounded.set(i, 0);  // frozen: not written
      EXPECT_TRUE(p.weights.same_bytes(rounded));
    }
    EXPECT_TRUE(p.master.fence_intact() && p.first.fence_intact() && p.second.fence_intact() &&
                p.weights.fence_intact());
  }
}

TEST_P(OptimizerKernel, AdamDoesNotDependOnThreadsAndSkipsWhatIsNotFinite) {
  const AdamProblem before(30011, type()), p(before), q(before);
  Context one(Device::cpu, 1, kScratch), two(Device::cpu, 2, kScratch);
  adam(one, p.args());
  adam(two, q.args());
  EXPECT_TRUE(p.master.same_bytes(q.master) && p.first.same_bytes(q.first) &&
              p.second.same_bytes(q.second) && p.weights.same_bytes(q.weights));
  EXPECT_FALSE(p.master.same_bytes(before.master));
  AdamProblem skipped(30011, type());
  skipped.control.set({kNaN, kNaN, 0});
  adam(two, skipped.args());
  EXPECT_TRUE(skipped.master.same_bytes(before.master) && skipped.first.same_bytes(before.first) &&
              skipped.second.same_bytes(before.second) &&
              skipped.weights.same_bytes(before.weights));
}

TEST_P(OptimizerKernel, AverageMovesTowardsTheMaster) {
  RandomStream random(4);
  Context ctx(Device::cpu, 2, 0);
  for (const std::int64_t P : {0, 1, 33, 50021}) {
    const TestTensor master = TestTensor::random({P}, type(), random);
    const TestTensor average = TestTensor::random({P}, type(), random);
    std::vector<double> expected = average.values();
    for (std::int64_t i = 0; i < P; ++i) {
      double& a = expected[static_cast<std::size_t>(i)];
      a += 0.001 * (master.get(i) - a);
    }
    exponential_average(ctx, master, 0.999, average);
    EXPECT_EQ("", testkit::mismatch(average, expected, testkit::tolerance_of(type())));
    EXPECT_TRUE(average.fence_intact());
  }
}

TEST(Adam, WalksDownToTheMinimum) {
  // loss = sum of (w - target)^2: after many updates w is the target.
  Context ctx(Device::cpu, 1, kScratch);
  const std::vector<double> target = {1, -2, 0.5};
  TestTensor w = TestTensor::zeros({3}, DType::f32), m(w), v(w), g(w), control({3}, DType::f64);
  const std::vector<ParameterRun> runs = {{.begin = 0, .end = 3}};
  for (std::int64_t t = 1; t <= 2000; ++t) {
    for (std::int64_t i = 0; i < 3; ++i) {
      g.set(i, 2 * (w.get(i) - target[static_cast<std::size_t>(i)]));
    }
    gradient_norm(ctx, g, runs, 1, control);
    adam(ctx, {.master = w,
               .gradient = g,
               .first = m,
               .second = v,
               .runs = runs,
               .control = control,
               .rate = 0.01,
               .count = t});
  }
  EXPECT_EQ("", testkit::mismatch(w, target, {.relative = 0, .absolute = 1e-3}));
}

TEST(Optimizer, RefusesWhatDoesNotFit) {
  Context ctx(Device::cpu, 1, kScratch);
  AdamProblem p(100, DType::f32);
  const TestTensor control({3}, DType::f64), small({2}, DType::f64), half({100}, DType::bf16);
  const std::vector<ParameterRun> outside = {{.begin = 0, .end = 101}};
  const std::vector<ParameterRun> overlapping = {{.begin = 0, .end = 10}, {.begin = 9, .end = 20}};
  for (const auto& runs : {outside, overlapping}) {
    EXPECT_THROW(gradient_norm(ctx, p.gradient, runs, 0, control), InternalError);
    p.runs = runs;
    EXPECT_THROW(adam(ctx, p.args()), InternalError);
  }
  p.runs.clear();
  EXPECT_THROW(gradient_norm(ctx, p.gradient, p.runs, 0, small), InternalError);
  EXPECT_THROW(gradient_norm(ctx, p.gradient, p.runs, -1, control), InternalError);
  EXPECT_THROW(gradient_norm(ctx, half, p.runs, 0, control), InternalError);
  AdamArgs args = p.args();
  args.count = 0;
  EXPECT_THROW(adam(ctx, args), InternalError);
  args = p.args();
  args.weights = p.master;
  EXPECT_THROW(adam(ctx, args), InternalError);
  EXPECT_THROW(exponential_average(ctx, half, 0.9, half), InternalError);
}

}  // namespace
}  // namespace octavo
