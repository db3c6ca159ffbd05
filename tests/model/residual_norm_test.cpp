#include "model/ops/residual_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/testkit/dropout.h"
#include "tests/testkit/gradient.h"
#include "tests/testkit/instruction_sets.h"
#include "tests/testkit/tensors.h"

namespace octavo {
namespace {

using testkit::TestTensor;

constexpr std::int64_t kScratch = 1 << 20;

struct Shape {
  std::int64_t N, D;
};
const std::vector<Shape> kShapes = {{0, 5},   {1, 1},  {2, 2},    {3, 7},   {33, 16},
                                    {70, 17}, {5, 67}, {129, 64}, {2, 1031}};

struct Problem {
  Shape shape;
  TestTensor residual, branch, gamma, beta, ordinals, dy, dsum_in;
  Dropout dropout;

  Problem(const Shape& s, DType type, double probability) : shape(s) {
    RandomStream random(11);
    const DType statistics = statistics_type(type);
    residual = TestTensor::random({s.N, s.D}, type, random);
    branch = TestTensor::random({s.N, s.D}, type, random);
    gamma = TestTensor::random({s.D}, statistics, random);
    beta = TestTensor::random({s.D}, statistics, random);
    dy = TestTensor::random({s.N, s.D}, type, random);
    dsum_in = TestTensor::random({s.N, s.D}, type, random);
    ordinals = TestTensor({s.N}, DType::i64);
    for (std::int64_t n = 0; n < s.N; ++n) ordinals.set(n, static_cast<double>(1000 - 3 * n));
    dropout = {.probability = probability, .key = 77, .ordinals = {}};
    if (dropout.on()) dropout.ordinals = ordinals;
  }
  ResidualNormArgs args(bool with_branch) const {
    ResidualNormArgs in{.residual = residual, .gamma = gamma, .beta = beta, .epsilon = 1e-3};
    if (with_branch) {
      in.branch = branch;
      in.dropout = dropout;
    }
    return in;
  }
  double factor(std::int64_t n, std::int64_t d) const {
    return testkit::dropout_factor(dropout, 1000 - 3 * n, d);
  }
};

struct Saved {
  TestTensor sum, mean, rstd;
  Saved(const Shape& s, DType type)
      : sum({s.N, s.D}, type), mean({s.N}, statistics_type(type)), rstd(mean) {}
  ResidualNormSaved view() const { return {.sum = sum, .mean = mean, .rstd = rstd}; }
};

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// y, mean and rstd of rows s, by the definition.
struct ForwardReference {
  std::vector<double> y, mean, rstd;
  ForwardReference(const Problem& p, const std::vector<double>& s) : y(s.size()) {
    const auto [N, D] = p.shape;
    for (std::int64_t n = 0; n < N; ++n) {
      double m = 0, v = 0;
      for (std::int64_t d = 0; d < D; ++d) m += s[at(n * D + d)] / static_cast<double>(D);
      for (std::int64_t d = 0; d < D; ++d) {
        v += std::pow(s[at(n * D + d)] - m, 2) / static_cast<double>(D);
      }
      mean.push_back(m);
      rstd.push_back(1 / std::sqrt(v + 1e-3));
      for (std::int64_t d = 0; d < D; ++d) {
        y[at(n * D + d)] = (s[at(n * D + d)] - m) * rstd.back() * p.gamma.get(d) + p.beta.get(d);
      }
    }
  }
};

class ResidualNormKernel : public testkit::KernelTest {};
INSTANTIATE_TEST_SUITE_P(All, ResidualNormKernel, testkit::every_kernel(), testkit::kernel_name);

TEST_P(ResidualNormKernel, ForwardAgreesWithReference) {
  Context ctx(Device::cpu, 2, kScratch);
  for (const Shape& s : kShapes) {
    for (const double probability : {0.0, 0.3}) {
      const Problem p(s, type(), probability);
      const Saved saved(s, type());
      TestTensor y({s.N, s.D}, type());
      residual_norm_forward(ctx, p.args(true), y, saved.view());
      std::vector<double> sum = p.residual.values();
      for (std::int64_t i = 0; i < s.N * s.D; ++i) {
        sum[at(i)] += p.branch.get(i) * p.factor(i / s.D, i % s.D);
      }
      EXPECT_EQ("", testkit::mismatch(saved.sum, sum, testkit::tolerance_of(type(), 0.1)));
      const ForwardReference r(p, saved.sum.values());
      const auto statistics = testkit::tolerance_of(statistics_type(type()));
      EXPECT_EQ("", testkit::mismatch(saved.mean, r.mean, statistics)) << s.N << "x" << s.D;
      EXPECT_EQ("", testkit::mismatch(saved.rstd, r.rstd, statistics)) << s.N << "x" << s.D;
      EXPECT_EQ("", testkit::mismatch(y, r.y, testkit::tolerance_of(type()))) << s.N << "x" << s.D;
      EXPECT_TRUE(y.fence_intact() && saved.sum.fence_intact() && saved.mean.fence_intact());
    }
  }
}

TEST_P(ResidualNormKernel, ForwardWithoutBranchIsAPlainNorm) {
  Context ctx(Device::cpu, 2, kScratch);
  for (const Shape& s : kShapes) {
    const Problem p(s, type(), 0);
    const Saved saved(s, type());
    TestTensor y({s.N, s.D}, type());
    residual_norm_forward(ctx, p.args(false), y, saved.view());
    const ForwardReference r(p, p.residual.values());
    EXPECT_EQ("", testkit::mismatch(y, r.y, testkit::tolerance_of(type()))) << s.N << "x" << s.D;
    if (s.N > 0) {
      EXPECT_TRUE(std::isnan(saved.sum.get(0))) << "sum was written";
    }
  }
}

TEST_P(ResidualNormKernel, BackwardAgreesWithReference) {
  Context ctx(Device::cpu, 2, kScratch);
  for (const Shape& s : kShapes) {
    for (const double probability : {0.0, 0.3}) {
      const Problem p(s, type(), probability);
      const Saved saved(s, type());
      TestTensor y({s.N, s.D}, type()), dresidual(y), dbranch(y);
      residual_norm_forward(ctx, p.args(true), y, saved.view());
      const DType statistics = statistics_type(type());
      TestTensor dgamma({s.D}, statistics, std::vector<double>(at(s.D), 0.5)), dbeta(dgamma);
      residual_norm_backward(ctx, p.args(true), saved.view(), p.dy,
                             {.dsum_in = p.dsum_in,
                              .dresidual = dresidual,
                              .dbranch = dbranch,
                              .dgamma = dgamma,
                              .dbeta = dbeta});
      std::vector<double> ds(at(s.N * s.D)), db(ds), dg(at(s.D), 0.5), dbt(dg);
      for (std::int64_t n = 0; n < s.N; ++n) {
        const auto x = [&](std::int64_t d) {
          return (saved.sum.get(n * s.D + d) - saved.mean.get(n)) * saved.rstd.get(n);
        };
        const auto g = [&](std::int64_t d) { return p.dy.get(n * s.D + d) * p.gamma.get(d); };
        double mean_g = 0, mean_gx = 0;
        for (std::int64_t d = 0; d < s.D; ++d) {
          mean_g += g(d) / static_cast<double>(s.D);
          mean_gx += g(d) * x(d) / static_cast<double>(s.D);
          dg[at(d)] += p.dy.get(n * s.D + d) * x(d);
          dbt[at(d)] += p.dy.get(n * s.D + d);
        }
        for (std::int64_t d = 0; d < s.D; ++d) {
          const std::size_t i = at(n * s.D + d);
          ds[i] = saved.rstd.get(n) * (g(d) - mean_g - x(d) * mean_gx) + p.dsum_in.get(n * s.D + d);
          db[i] = ds[i] * p.factor(n, d);
        }
      }
      // A single column has variance 0, so rstd is about 30 and so are the terms that cancel.
      const double magnitude = s.D <= 2 ? 30 : 2;
      const auto tolerance = testkit::tolerance_of(type(), magnitude);
      const auto sums = testkit::tolerance_of(statistics, 10);
      EXPECT_EQ("", testkit::mismatch(dresidual, ds, tolerance)) << s.N << "x" << s.D;
      EXPECT_EQ("", testkit::mismatch(dbranch, db, tolerance)) << s.N << "x" << s.D;
      EXPECT_EQ("", testkit::mismatch(dgamma, dg, sums)) << s.N << "x" << s.D;
      EXPECT_EQ("", testkit::mismatch(dbeta, dbt, sums)) << s.N << "x" << s.D;
      EXPECT_TRUE(dresidual.fence_intact() && dbranch.fence_intact() && dgamma.fence_intact() &&
                  dbeta.fence_intact());
    }
  }
}

TEST_P(ResidualNormKernel, WorksInPlaceWhereAllowed) {
  Context ctx(Device::cpu, 2, kScratch);
  const Shape s{70, 37};
  const Problem p(s, type(), 0.2), q(s, type(), 0.2);
  const Saved saved(s, type());
  TestTensor y({s.N, s.D}, type());
  residual_norm_forward(ctx, p.args(true), y, saved.view());
  // y into the branch, the sum into the residual.
  residual_norm_forward(ctx, q.args(true), q.branch,
                        {.sum = q.residual, .mean = saved.mean, .rstd = saved.rstd});
  EXPECT_TRUE(q.branch.same_bytes(y));
  EXPECT_TRUE(q.residual.same_bytes(saved.sum));

  TestTensor dresidual({s.N, s.D}, type()), dbranch(dresidual), other(dresidual);
  residual_norm_backward(ctx, p.args(true), saved.view(), p.dy,
                         {.dsum_in = p.dsum_in, .dresidual = dresidual, .dbranch = dbranch});
  TestTensor dy(p.dy), dsum(p.dsum_in);
  residual_norm_backward(ctx, p.args(true), saved.view(), dy,
                         {.dsum_in = p.dsum_in, .dresidual = dy, .dbranch = other});
  EXPECT_TRUE(dy.same_bytes(dresidual) && other.same_bytes(dbranch));
  residual_norm_backward(ctx, p.args(true), saved.view(), p.dy,
                         {.dsum_in = dsum, .dresidual = dsum, .dbranch = other});
  EXPECT_TRUE(dsum.same_bytes(dresidual) && other.same_bytes(dbranch));
}

TEST_P(ResidualNormKernel, SumsDoNotDependOnThreads) {
  const Shape s{333, 40};
  const Problem p(s, type(), 0.1);
  const DType statistics = statistics_type(type());
  const TestTensor start = TestTensor::zeros({s.D}, statistics);
  TestTensor dgamma[2] = {start, start}, dbeta[2] = {start, start};
  TestTensor dresidual[2];
  for (const int threads : {1, 2}) {
    Context ctx(Device::cpu, threads, kScratch);
    const Saved saved(s, type());
    TestTensor y({s.N, s.D}, type());
    dresidual[threads - 1] = y;
    residual_norm_forward(ctx, p.args(true), y, saved.view());
    residual_norm_backward(ctx, p.args(true), saved.view(), p.dy,
                           {.dresidual = dresidual[threads - 1],
                            .dgamma = dgamma[threads - 1],
                            .dbeta = dbeta[threads - 1]});
  }
  EXPECT_TRUE(dgamma[0].same_bytes(dgamma[1]) && dbeta[0].same_bytes(dbeta[1]) &&
              dresidual[0].same_bytes(dresidual[1]));
}

TEST(ResidualNorm, VarianceSurvivesALargeMean) {
  Context ctx(Device::cpu, 1, kScratch);
  const Shape s{1, 64};
  Problem p(s, DType::f32, 0);
  for (std::int64_t d = 0; d < s.D; ++d) p.residual.set(d, 10000 + 0.5 * (d % 2));
  const Saved saved(s, DType::f32);
  TestTensor y({s.N, s.D}, DType::f32);
  residual_norm_forward(ctx, p.args(false), y, saved.view());
  EXPECT_NEAR(saved.rstd.get(0), 1 / std::sqrt(0.0625 + 1e-3), 1e-4);
}

TEST(ResidualNormGradient, AgreesWithCentralDifferences) {
  Context ctx(Device::cpu, 2, kScratch);
  for (const Shape& s : {Shape{1, 1}, Shape{2, 7}, Shape{5, 16}, Shape{3, 19}}) {
    for (const bool with_branch : {false, true}) {
      const Problem p(s, DType::f64, 0.3);
      const Saved saved(s, DType::f64);
      TestTensor y({s.N, s.D}, DType::f64), dresidual(y), dbranch(y);
      TestTensor dgamma = TestTensor::zeros({s.D}, DType::f64), dbeta(dgamma);
      ResidualNormSaved view = saved.view();
      if (!with_branch) view.sum = p.residual;
      // The sum is an output too, as the next residual of a pre-norm layer.
      const auto loss = [&] {
        residual_norm_forward(ctx, p.args(with_branch), y, view);
        return testkit::weighted_sum(p.dy, y) + testkit::weighted_sum(p.dsum_in, view.sum);
      };
      loss();
      ResidualNormGradients out{.dsum_in = p.dsum_in,
                                .dresidual = dresidual,
                                .dbranch = {},
                                .dgamma = dgamma,
                                .dbeta = dbeta};
      std::vector<testkit::GradientCheck> checks = {
          {"residual", p.residual, dresidual}, {"gamma", p.gamma, dgamma}, {"beta", p.beta, dbeta}};
      if (with_branch) {
        out.dbranch = dbranch;
        checks.push_back({"branch", p.branch, dbranch});
      }
      residual_norm_backward(ctx, p.args(with_branch), view, p.dy, out);
      EXPECT_EQ("", testkit::grad_mismatch(loss, checks, 1e-7)) << s.N << "x" << s.D;
    }
  }
}

TEST(ResidualNorm, RefusesWhatDoesNotFit) {
  Context ctx(Device::cpu, 1, kScratch);
  const Problem p({4, 3}, DType::f32, 0.5);
  const Saved saved({4, 3}, DType::f32), small({3, 3}, DType::f32);
  const TestTensor y({4, 3}, DType::f32), wide({4, 4}, DType::f32);
  EXPECT_THROW(residual_norm_forward(ctx, p.args(true), wide, saved.view()), InternalError);
  EXPECT_THROW(residual_norm_forward(ctx, p.args(true), y, small.view()), InternalError);
  ResidualNormArgs in = p.args(true);
  in.dropout.ordinals = {};
  EXPECT_THROW(residual_norm_forward(ctx, in, y, saved.view()), InternalError);
  in = p.args(true);
  in.dropout.probability = 0.999999;
  EXPECT_THROW(residual_norm_forward(ctx, in, y, saved.view()), InternalError);
  in = p.args(true);
  in.gamma = wide;
  EXPECT_THROW(residual_norm_forward(ctx, in, y, saved.view()), InternalError);
  EXPECT_THROW(residual_norm_backward(ctx, p.args(true), saved.view(), y, {.dresidual = wide}),
               InternalError);
}

TEST(ResidualNorm, PlanMeasuresItsScratch) {
  Context plan(Device::plan, 2, 0);
  OpList list;
  plan.set_recorder(&list);
  const Tensor x(nullptr, {100, 8}, DType::bf16), gamma(nullptr, {8}, DType::f32);
  const Tensor mean(nullptr, {100}, DType::f32);
  residual_norm_forward(plan, {.residual = x, .branch = x, .gamma = gamma, .beta = gamma}, x,
                        {.sum = x, .mean = mean, .rstd = mean});
  EXPECT_EQ(plan.scratch().high_water(), 0);
  residual_norm_backward(plan, {.residual = {}, .gamma = gamma, .beta = gamma},
                         {.sum = x, .mean = mean, .rstd = mean}, x,
                         {.dresidual = x, .dgamma = gamma, .dbeta = gamma});
  EXPECT_GT(plan.scratch().high_water(), 0);
  ASSERT_EQ(list.ops().size(), 2u);
  EXPECT_EQ(list.ops()[0].bytes, 4 * 100 * 8 * 2 + 2 * 8 * 4 + 2 * 100 * 4);
}

}  // namespace
}  // namespace octavo
