#include "model/ops/activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "tests/testkit/dropout.h"
#include "tests/testkit/gradient.h"
#include "tests/testkit/instruction_sets.h"
#include "tests/testkit/tensors.h"

namespace octavo {
namespace {

using testkit::TestTensor;

struct Shape {
  std::int64_t N, F;
};
const std::vector<Shape> kShapes = {{0, 3}, {3, 0}, {1, 1}, {5, 7}, {3, 16}, {70, 33}, {4, 1031}};

double apply(Activation kind, double x) {
  if (kind == Activation::relu) return x > 0 ? x : 0;
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

double slope(Activation kind, double x) {
  if (kind == Activation::relu) return x > 0 ? 1 : 0;
  const double c = std::sqrt(2 / std::numbers::pi);
  const double t = std::tanh(c * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
}

struct Problem {
  TestTensor x, dy, ordinals;
  ActivationArgs args;
  Problem(const Shape& s, DType type, Activation kind, double probability) {
    RandomStream random(5);
    x = TestTensor::random({s.N, s.F}, type, random, 2);
    dy = TestTensor::random({s.N, s.F}, type, random);
    ordinals = TestTensor({s.N}, DType::i64);
    for (std::int64_t n = 0; n < s.N; ++n) ordinals.set(n, static_cast<double>(7 * n + 1));
    args = {
        .x = x, .kind = kind, .dropout = {.probability = probability, .key = 3, .ordinals = {}}};
    if (args.dropout.on()) args.dropout.ordinals = ordinals;
  }
  double factor(std::int64_t i) const {
    const std::int64_t F = x.view().dim(1);
    return testkit::dropout_factor(args.dropout, 7 * (i / F) + 1, i % F);
  }
};

const auto kCases = {std::pair{Activation::relu, 0.0},
                     {Activation::relu, 0.25},
                     {Activation::gelu, 0.0},
                     {Activation::gelu, 0.25}};

class ActivationKernel : public testkit::KernelTest {};
INSTANTIATE_TEST_SUITE_P(All, ActivationKernel, testkit::every_kernel(), testkit::kernel_name);

TEST_P(ActivationKernel, AgreesWithReference) {
  Context ctx(Device::cpu, 2, 0);
  for (const auto& [kind, probability] : kCases) {
    for (const Shape& s : kShapes) {
      const Problem p(s, type(), kind, probability);
      TestTensor y({s.N, s.F}, type()), dx(y);
      activation_forward(ctx, p.args, y);
      activation_backward(ctx, p.args, y, p.dy, dx);
      std::vector<double> expected, gradient;
      for (std::int64_t i = 0; i < s.N * s.F; ++i) {
        expected.push_back(apply(kind, p.x.get(i)) * p.factor(i));
        gradient.push_back(slope(kind, p.x.get(i)) * p.factor(i) * p.dy.get(i));
      }
      const auto tolerance = testkit::tolerance_of(type(), 0.1);
      EXPECT_EQ("", testkit::mismatch(y, expected, tolerance)) << s.N << "x" << s.F;
      EXPECT_EQ("", testkit::mismatch(dx, gradient, tolerance)) << s.N << "x" << s.F;
      EXPECT_TRUE(y.fence_intact() && dx.fence_intact());
    }
  }
}

TEST_P(ActivationKernel, WorksInPlaceWhereAllowed) {
  Context ctx(Device::cpu, 2, 0);
  for (const auto& [kind, probability] : kCases) {
    const Problem p({33, 19}, type(), kind, probability);
    TestTensor y({33, 19}, type()), dx(y), in_place(p.dy);
    activation_forward(ctx, p.args, y);
    activation_backward(ctx, p.args, y, p.dy, dx);
    activation_backward(ctx, p.args, y, in_place, in_place);
    EXPECT_TRUE(in_place.same_bytes(dx));
    if (kind == Activation::relu) {
      activation_forward(ctx, p.args, p.x);
      EXPECT_TRUE(p.x.same_bytes(y));
    }
  }
}

TEST_P(ActivationKernel, ExtremesSaturateAndNaNPasses) {
  Context ctx(Device::cpu, 1, 0);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> x = {-1e4, -50, -12, 0, 12, 50, 1e4, nan};
  TestTensor in({1, 8}, type(), x), y({1, 8}, type()),
      dy({1, 8}, type(), std::vector<double>(8, 1));
  for (const Activation kind : {Activation::relu, Activation::gelu}) {
    TestTensor dx({1, 8}, type());
    const ActivationArgs args{.x = in, .kind = kind};
    activation_forward(ctx, args, y);
    activation_backward(ctx, args, y, dy, dx);
    for (std::int64_t i = 0; i < 8; ++i) {
      const double v = in.get(i);
      if (std::isnan(v)) {
        EXPECT_TRUE(std::isnan(y.get(i)));
        continue;
      }
      EXPECT_NEAR(y.get(i), v > 0 ? v : 0, 1e-6 * std::abs(v)) << v;
      const double expected = v > 0 ? 1 : v == 0 && kind == Activation::gelu ? 0.5 : 0;
      EXPECT_NEAR(dx.get(i), expected, 1e-6) << v;
    }
  }
}

TEST(ActivationGradient, AgreesWithCentralDifferences) {
  Context ctx(Device::cpu, 2, 0);
  for (const auto& [kind, probability] : kCases) {
    for (const Shape& s : {Shape{1, 1}, Shape{3, 7}, Shape{5, 9}}) {
      const Problem p(s, DType::f64, kind, probability);
      TestTensor y({s.N, s.F}, DType::f64), dx(y);
      const auto loss = [&] {
        activation_forward(ctx, p.args, y);
        return testkit::weighted_sum(p.dy, y);
      };
      loss();
      activation_backward(ctx, p.args, y, p.dy, dx);
      EXPECT_EQ("", testkit::grad_mismatch(loss, {{"x", p.x, dx}}, 1e-7));
    }
  }
}

TEST(Activation, RefusesWhatDoesNotFitAndStatesItsCost) {
  Context ctx(Device::plan, 1, 0);
  OpList list;
  ctx.set_recorder(&list);
  const Tensor x(nullptr, {4, 3}, DType::f32), wide(nullptr, {4, 4}, DType::f32);
  EXPECT_THROW(activation_forward(ctx, {.x = x}, wide), InternalError);
  EXPECT_THROW(activation_backward(ctx, {.x = x}, x, x, wide), InternalError);
  EXPECT_THROW(activation_backward(ctx, {.x = {}}, wide, x, x), InternalError);
  EXPECT_THROW(
      activation_forward(ctx, {.x = x, .dropout = {.probability = 0.1, .ordinals = {}}}, x),
      InternalError);
  activation_forward(ctx, {.x = x}, x);
  activation_backward(ctx, {.x = {}}, x, x, x);  // relu does not look at x
  ASSERT_EQ(list.ops().size(), 2u);
  EXPECT_EQ(list.ops()[0].bytes, 2 * 48);
  EXPECT_EQ(list.ops()[1].bytes, 3 * 48);
}

}  // namespace
}  // namespace octavo
