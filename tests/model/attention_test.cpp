#include "model/ops/attention.h"

#include <gtest/gtest.h>

#include "tests/model/attention_reference.h"
#include "tests/testkit/gradient.h"
#include "tests/testkit/instruction_sets.h"

namespace octavo::testkit {

namespace {

constexpr std::int64_t kScratch = 4 << 20;

std::vector<AttentionCase> cases() {
  return {
      {.name = "one token", .queries = {1}, .heads = 2},
      {.name = "ragged self",
       .queries = {5, 1, 17, 33},
       .heads = 3,
       .key_width = 8,
       .value_width = 8},
      {.name = "ragged causal",
       .queries = {5, 1, 17, 33},
       .heads = 3,
       .key_width = 8,
       .value_width = 8,
       .mask = Mask::causal},
      {.name = "cross",
       .queries = {3, 40, 1, 19},
       .keys = {11, 2, 35, 1},
       .heads = 2,
       .key_width = 16,
       .value_width = 16},
      {.name = "several tiles",
       .queries = {70, 2},
       .keys = {37, 90},
       .key_width = 32,
       .value_width = 32},
      {.name = "several causal tiles",
       .queries = {101},
       .key_width = 32,
       .value_width = 32,
       .mask = Mask::causal},
      {.name = "odd widths", .queries = {9, 20}, .heads = 3, .key_width = 5, .value_width = 19},
      {.name = "width 1", .queries = {6}, .heads = 2, .key_width = 1, .value_width = 1},
      {.name = "wide values",
       .queries = {12, 4},
       .keys = {5, 13},
       .key_width = 7,
       .value_width = 40},
      {.name = "dropout",
       .queries = {5, 1, 17, 33},
       .heads = 3,
       .key_width = 8,
       .value_width = 8,
       .dropout = 0.3},
      {.name = "causal dropout",
       .queries = {50, 7},
       .heads = 2,
       .key_width = 8,
       .value_width = 12,
       .mask = Mask::causal,
       .dropout = 0.1},
      {.name = "nothing to see", .queries = {3, 0, 2}, .keys = {0, 4, 5}, .heads = 2},
      {.name = "no sentence", .queries = {}, .heads = 2},
  };
}

// Rows beyond the tokens are written as zero, columns outside the views not at all.
std::string tails(const AttentionProblem& p) {
  const auto zero_from = [](const Tensor& t, std::int64_t first) {
    for (const double x : values_of(t.rows(first, t.dim(0) - first))) {
      if (x != 0) return false;
    }
    return true;
  };
  const AttentionGradients g = p.gradients();
  const std::int64_t queries = p.queries.tokens.tokens, keys = p.keys.tokens.tokens;
  std::string wrong;
  if (!zero_from(p.out, queries)) wrong += "tail of out is not zero; ";
  if (!zero_from(g.dq, queries)) wrong += "tail of dq is not zero; ";
  if (!zero_from(g.dk, keys)) wrong += "tail of dk is not zero; ";
  if (!zero_from(g.dv, keys)) wrong += "tail of dv is not zero; ";
  for (std::int64_t r = 0; r < p.dkv.view().dim(0); ++r) {
    if (!std::isnan(p.dkv.get(r * p.dkv.view().dim(1)))) wrong = "a column beside dk was written";
  }
  for (const TestTensor* t : {&p.out, &p.lse, &p.dq, &p.dkv}) {
    if (!t->fence_intact()) wrong += "memory beside a result was written";
  }
  return wrong;
}

class AttentionKernel : public KernelTest {};

TEST_P(AttentionKernel, AgreesWithTheFormulas) {
  Context ctx(Device::cpu, 1, kScratch);
  for (const AttentionCase& c : cases()) {
    SCOPED_TRACE(c.name);
    AttentionProblem p(c, type(), 11);
    p.forward(ctx);
    p.backward(ctx);
    TestTensor weights({p.queries.tokens.tokens, c.heads, p.keys.tokens.longest},
                       statistics_type(type()));
    attention_weights(ctx, p.args(), weights);
    const AttentionReference expected(p);
    const DType statistics = statistics_type(type());
    EXPECT_EQ("", mismatch(p.out, expected.out, tolerance_of(type())));
    EXPECT_EQ("", mismatch(p.lse, expected.lse, tolerance_of(statistics)));
    EXPECT_EQ("", mismatch(weights, expected.weights, tolerance_of(statistics)));
    EXPECT_EQ("", mismatch(p.gradients().dq, expected.dq, tolerance_of(type())));
    EXPECT_EQ("", mismatch(p.gradients().dk, expected.dk, tolerance_of(type(), 4)));
    EXPECT_EQ("", mismatch(p.gradients().dv, expected.dv, tolerance_of(type(), 4)));
    EXPECT_EQ("", tails(p));
  }
}

TEST_P(AttentionKernel, SurvivesLargeScores) {
  Context ctx(Device::cpu, 1, kScratch);
  AttentionProblem p({.name = "", .queries = {20}, .key_width = 8, .value_width = 8}, type(), 3);
  for (std::int64_t i = 0; i < 20 * p.q.view().dim(1); ++i) p.q.set(i, 300 * p.q.get(i));
  p.forward(ctx);
  p.backward(ctx);
  const AttentionReference expected(p);
  // Scores of some hundreds: their rounding alone moves the weights by 1e-4 in float32.
  const Tolerance tolerance{.relative = type() == DType::bf16 ? 1e-2 : 1e-3, .absolute = 1e-2};
  EXPECT_EQ("", mismatch(p.out, expected.out, tolerance));
  EXPECT_EQ("", mismatch(p.gradients().dv, expected.dv, tolerance));
}

INSTANTIATE_TEST_SUITE_P(All, AttentionKernel, every_kernel(), kernel_name);

class AttentionGradient : public ::testing::TestWithParam<AttentionCase> {};

// loss = sum(w * out) for a fixed random w, which is then the gradient of out.
TEST_P(AttentionGradient, AgreesWithCentralDifferences) {
  Context ctx(Device::cpu, 1, kScratch);
  AttentionProblem p(GetParam(), DType::f64, 5);
  const AttentionArgs in = p.args();
  const AttentionGradients g = p.gradients();
  const std::int64_t queries = p.queries.tokens.tokens, keys = p.keys.tokens.tokens;
  const auto loss = [&] {
    p.forward(ctx);
    return weighted_sum(p.dout.view().rows(0, queries), p.out.view().rows(0, queries));
  };
  loss();
  p.backward(ctx);
  EXPECT_EQ("", grad_mismatch(loss,
                              {{"q", in.q.rows(0, queries), g.dq.rows(0, queries)},
                               {"k", in.k.rows(0, keys), g.dk.rows(0, keys)},
                               {"v", in.v.rows(0, keys), g.dv.rows(0, keys)}},
                              1e-8));
}

INSTANTIATE_TEST_SUITE_P(
    All, AttentionGradient,
    ::testing::Values(
        AttentionCase{.name = "self", .queries = {3, 1, 20}, .heads = 2},
        AttentionCase{.name = "causal", .queries = {3, 1, 20}, .heads = 2, .mask = Mask::causal},
        AttentionCase{.name = "cross",
                      .queries = {3, 1, 9},
                      .keys = {5, 2, 1},
                      .heads = 2,
                      .key_width = 3,
                      .value_width = 5},
        AttentionCase{.name = "dropout", .queries = {4, 18}, .keys = {17, 3}, .dropout = 0.4},
        AttentionCase{.name = "causal_dropout",
                      .queries = {21, 2},
                      .heads = 2,
                      .key_width = 2,
                      .value_width = 3,
                      .mask = Mask::causal,
                      .dropout = 0.2}),
    [](const auto& test) { return test.param.name; });

TEST(Attention, OneSentenceAtATimeGivesTheSameBytes) {
  Context ctx(Device::cpu, 1, kScratch);
  const std::vector<std::int64_t> lengths{5, 31, 1, 48};
  const AttentionCase all{.name = "",
                          .queries = lengths,
                          .heads = 2,
                          .key_width = 8,
                          .value_width = 8,
                          .mask = Mask::causal,
                          .dropout = 0.1};
  AttentionProblem packed(all, DType::f32, 21);
  packed.forward(ctx);
  packed.backward(ctx);
  std::int64_t row = 0;
  for (const std::int64_t length : lengths) {
    AttentionCase single = all;
    single.queries = {length};
    AttentionProblem p(single, DType::f32, 0);
    p.queries = Packed({length}, (std::int64_t{1} << 33) + 5 + row);
    const auto copy = [&](const TestTensor& from, TestTensor& to) {
      const std::int64_t width = from.view().dim(1);
      for (std::int64_t i = 0; i < length * width; ++i) to.set(i, from.get(row * width + i));
    };
    copy(packed.q, p.q);
    copy(packed.kv, p.kv);
    copy(packed.dout, p.dout);
    p.forward(ctx);
    p.backward(ctx);
    const auto same = [&](const Tensor& whole, const Tensor& part) {
      return values_of(whole.rows(row, length)) == values_of(part.rows(0, length));
    };
    const AttentionGradients a = packed.gradients(), b = p.gradients();
    EXPECT_TRUE(same(packed.out, p.out));
    EXPECT_TRUE(same(a.dq, b.dq));
    EXPECT_TRUE(same(a.dk, b.dk));
    EXPECT_TRUE(same(a.dv, b.dv));
    row += length;
  }
}

TEST(Attention, ThreadsDontChangeAByte) {
  const AttentionCase c{.name = "",
                        .queries = {40, 3, 1, 25, 90},
                        .keys = {2, 30, 7, 7, 50},
                        .heads = 3,
                        .key_width = 64,
                        .value_width = 64,
                        .dropout = 0.1};
  AttentionProblem one(c, DType::f32, 8);
  Context single(Device::cpu, 1, kScratch);
  one.forward(single);
  one.backward(single);
  for (const int threads : {2, 3, 16}) {
    AttentionProblem many(c, DType::f32, 8);
    Context ctx(Device::cpu, threads, kScratch);
    many.forward(ctx);
    many.backward(ctx);
    EXPECT_TRUE(one.out.same_bytes(many.out));
    EXPECT_TRUE(one.lse.same_bytes(many.lse));
    EXPECT_EQ(values_of(one.gradients().dq), values_of(many.gradients().dq));
    EXPECT_EQ(values_of(one.gradients().dk), values_of(many.gradients().dk));
    EXPECT_EQ(values_of(one.gradients().dv), values_of(many.gradients().dv));
  }
}

TEST(Attention, LogSumNeedNotBeWanted) {
  Context ctx(Device::cpu, 1, kScratch);
  AttentionProblem p(cases()[3], DType::f32, 2), q(cases()[3], DType::f32, 2);
  attention_forward(ctx, p.args(), p.out, {});
  q.forward(ctx);
  EXPECT_TRUE(p.out.same_bytes(q.out));
}

// A NaN must reach the loss, where it is noticed; other sentences stay clean.
TEST(Attention, NanComesThrough) {
  Context ctx(Device::cpu, 1, kScratch);
  AttentionProblem p({.name = "", .queries = {4, 4}, .key_width = 8, .value_width = 8}, DType::f32,
                     2);
  p.kv.set(2 * p.kv.view().dim(1) + 3, NAN);  // a key of the first sentence
  p.forward(ctx);
  for (std::int64_t i = 0; i < 8 * 8; ++i) EXPECT_EQ(i < 4 * 8, std::isnan(p.out.get(i))) << i;
}

TEST(Attention, PlanForeseesScratchAndCost) {
  const std::int64_t B = 3, Q = 20, K = 35, H = 2, D = 24;
  const TokenBatch planned = planned_batch(B, K, Q);
  const auto plan = [&](Context& ctx, const PackedTokens& keys, Mask mask) {
    const Tensor q(nullptr, {planned.target.rows, H * D}, DType::bf16);
    const Tensor k(nullptr, {keys.rows, H * D}, DType::bf16);
    const Tensor lse(nullptr, {planned.target.rows, H}, DType::f32);
    const AttentionArgs in{.spec = {.heads = H, .key_width = D, .value_width = D, .mask = mask},
                           .q = q,
                           .k = k,
                           .v = k,
                           .queries = planned.target,
                           .keys = keys};
    attention_forward(ctx, in, q, lse);
    attention_backward(ctx, in, q, lse, q, {.dq = q, .dk = k, .dv = k});
  };
  OpList planned_ops;
  Context ctx(Device::plan, 2, 0);
  ctx.set_recorder(&planned_ops);
  plan(ctx, planned.source, Mask::none);
  plan(ctx, planned.target, Mask::causal);
  EXPECT_EQ(0, ctx.scratch().used());
  const auto flops = [&](std::size_t i) { return planned_ops.ops()[i].flops; };
  ASSERT_EQ(4u, planned_ops.ops().size());
  EXPECT_EQ(4 * B * H * Q * K * D, flops(0));
  EXPECT_EQ(10 * B * H * Q * K * D, flops(1));
  EXPECT_EQ(4 * B * H * (Q * (Q + 1) / 2) * D, flops(2));

  const AttentionCase c{.name = "",
                        .queries = {Q, Q, Q},
                        .keys = {K, K, K},
                        .heads = H,
                        .key_width = D,
                        .value_width = D};
  AttentionProblem p(c, DType::bf16, 1);
  OpList real_ops;
  Context real(Device::cpu, 2, ctx.scratch().high_water());
  real.set_recorder(&real_ops);
  p.forward(real);
  p.backward(real);
  EXPECT_EQ(flops(0), real_ops.ops()[0].flops);
  EXPECT_EQ(flops(1), real_ops.ops()[1].flops);
}

TEST(Attention, RefusesWhatDoesNotFit) {
  Context ctx(Device::cpu, 1, kScratch);
  AttentionProblem p({.name = "", .queries = {4, 2}, .keys = {2, 4}}, DType::f32, 2);
  TestTensor narrow({64, 3}, DType::f32), other({64, 4}, DType::f64);
  EXPECT_THROW(attention_forward(ctx, p.args(), narrow, p.lse), InternalError);
  EXPECT_THROW(attention_forward(ctx, p.args(), other, p.lse), InternalError);
  EXPECT_THROW(attention_forward(ctx, p.args(), p.out, narrow), InternalError);
  AttentionProblem causal({.name = "", .queries = {4, 2}, .keys = {2, 4}, .mask = Mask::causal},
                          DType::f32, 2);
  EXPECT_THROW(causal.forward(ctx), InternalError);
  AttentionProblem fewer({.name = "", .queries = {4, 2}, .keys = {6}}, DType::f32, 2);
  EXPECT_THROW(fewer.forward(ctx), InternalError);
}

}  // namespace
}  // namespace octavo::testkit
