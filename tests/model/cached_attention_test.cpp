#include "model/ops/cached_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/testkit/instruction_sets.h"
#include "tests/testkit/tensors.h"

namespace octavo::testkit {
namespace {

/// R hypotheses with a past of up to S steps, spread over a cache; column 0 of q and of the cache
/// belongs to somebody else.
struct Problem {
  Problem(const AttentionSpec& s, std::int64_t R, std::int64_t S, std::int64_t past, DType type)
      : spec(s),
        steps(past),
        q({R, s.heads * s.key_width + 1}, type),
        cache({R * S + 3, s.heads * (s.key_width + s.value_width) + 1}, type),
        slots({R, S}, DType::i32),
        lengths({R}, DType::i32),
        out({R, s.heads * s.value_width}, type) {
    RandomStream stream(3);
    for (std::int64_t i = 0; i < q.view().elements(); ++i) q.set(i, stream.normal());
    for (std::int64_t i = 0; i < cache.view().elements(); ++i) cache.set(i, stream.normal());
    for (std::int64_t i = 0; i < R * S; ++i) {
      slots.set(i, static_cast<double>(stream.below(static_cast<std::uint64_t>(R * S + 3))));
    }
    for (std::int64_t r = 0; r < R; ++r) lengths.set(r, static_cast<double>(past));
  }
  CachedAttentionArgs args() const {
    return {.spec = spec,
            .q = q.view().columns(1, q.view().dim(1) - 1),
            .cache = cache.view().columns(1, cache.view().dim(1) - 1),
            .slots = slots,
            .steps = steps,
            .lengths = lengths};
  }
  std::vector<double> expected() const;

  AttentionSpec spec;
  std::int64_t steps;
  TestTensor q, cache, slots, lengths, out;
};

std::vector<double> Problem::expected() const {
  const std::int64_t R = q.view().dim(0), H = spec.heads, K = spec.key_width, V = spec.value_width;
  std::vector<double> result;
  for (std::int64_t r = 0; r < R; ++r) {
    for (std::int64_t h = 0; h < H; ++h) {
      std::vector<double> weights, mixed(static_cast<std::size_t>(V), 0);
      double sum = 0;
      const auto cached = [&](std::int64_t s, std::int64_t column) {
        const auto slot = static_cast<std::int64_t>(slots.get(r * slots.view().dim(1) + s));
        return cache.get(slot * cache.view().dim(1) + 1 + column);
      };
      const auto seen = static_cast<std::int64_t>(lengths.get(r));
      for (std::int64_t s = 0; s < seen; ++s) {
        double dot = 0;
        for (std::int64_t t = 0; t < K; ++t) {
          dot += q.get(r * q.view().dim(1) + 1 + h * K + t) * cached(s, h * K + t);
        }
        weights.push_back(std::exp(spec.scale * dot));
        sum += weights.back();
      }
      for (std::int64_t s = 0; s < seen; ++s) {
        for (std::int64_t t = 0; t < V; ++t) {
          mixed[static_cast<std::size_t>(t)] +=
              weights[static_cast<std::size_t>(s)] / sum * cached(s, H * K + h * V + t);
        }
      }
      result.insert(result.end(), mixed.begin(), mixed.end());
    }
  }
  return result;
}

class CachedAttentionKernel : public KernelTest {};

TEST_P(CachedAttentionKernel, AgreesWithTheFormulas) {
  Context ctx(Device::cpu, 1, 1 << 16);
  const std::vector<AttentionSpec> specs{
      {.heads = 1, .key_width = 1, .value_width = 1},
      {.heads = 3, .key_width = 5, .value_width = 7},
      {.heads = 2, .key_width = 64, .value_width = 64, .scale = 0.125},
      {.heads = 2, .key_width = 33, .value_width = 130, .scale = 0.2}};
  for (const AttentionSpec& spec : specs) {
    for (const std::int64_t past : {1, 2, 17, 40}) {
      SCOPED_TRACE(past);
      Problem p(spec, 5, 40, past, type());
      cached_attention_forward(ctx, p.args(), p.out);
      EXPECT_EQ("", mismatch(p.out, p.expected(), tolerance_of(type())));
      EXPECT_TRUE(p.out.fence_intact());
    }
  }
}

TEST_P(CachedAttentionKernel, RowsMaySeeDifferentNumbersOfTokens) {
  Context ctx(Device::cpu, 1, 1 << 16);
  Problem p({.heads = 2, .key_width = 33, .value_width = 20}, 7, 23, 23, type());
  for (std::int64_t r = 0; r < 7; ++r) p.lengths.set(r, static_cast<double>(1 + 5 * r % 23));
  cached_attention_forward(ctx, p.args(), p.out);
  EXPECT_EQ("", mismatch(p.out, p.expected(), tolerance_of(type())));
  Problem all({.heads = 2, .key_width = 33, .value_width = 20}, 7, 23, 11, type()), same = all;
  CachedAttentionArgs without = same.args();
  without.lengths = {};
  cached_attention_forward(ctx, all.args(), all.out);
  cached_attention_forward(ctx, without, same.out);
  EXPECT_TRUE(all.out.same_bytes(same.out));
}

INSTANTIATE_TEST_SUITE_P(All, CachedAttentionKernel, every_kernel(), kernel_name);

TEST(CachedAttention, ThreadsDontChangeAByte) {
  const AttentionSpec spec{.heads = 3, .key_width = 20, .value_width = 20};
  Problem one(spec, 64, 20, 13, DType::f32);
  Context single(Device::cpu, 1, 1 << 16);
  cached_attention_forward(single, one.args(), one.out);
  for (const int threads : {2, 5, 32}) {
    Problem many(spec, 64, 20, 13, DType::f32);
    Context ctx(Device::cpu, threads, 1 << 16);
    cached_attention_forward(ctx, many.args(), many.out);
    EXPECT_TRUE(one.out.same_bytes(many.out));
  }
}

TEST(CachedAttention, PlanOfTheFirstStepHoldsForAll) {
  const AttentionSpec spec{.heads = 2, .key_width = 8, .value_width = 8};
  Problem p(spec, 3, 50, 1, DType::bf16);
  Context plan(Device::plan, 2, 0);
  cached_attention_forward(plan, p.args(), p.out);
  Context ctx(Device::cpu, 2, plan.scratch().high_water());
  p.steps = 50;
  for (std::int64_t r = 0; r < 3; ++r) p.lengths.set(r, 50);
  cached_attention_forward(ctx, p.args(), p.out);
  EXPECT_EQ("", mismatch(p.out, p.expected(), tolerance_of(DType::bf16)));
}

TEST(CachedAttention, NoRowsAndWrongArguments) {
  const AttentionSpec spec{.heads = 2, .key_width = 4, .value_width = 4};
  Context ctx(Device::cpu, 2, 1 << 16);
  Problem none(spec, 0, 5, 2, DType::f32);
  cached_attention_forward(ctx, none.args(), none.out);
  Problem p(spec, 2, 5, 2, DType::f32);
  const auto call = [&] { cached_attention_forward(ctx, p.args(), p.out); };
  call();
  p.steps = 0;
  EXPECT_THROW(call(), InternalError);
  p.steps = 6;
  EXPECT_THROW(call(), InternalError);
  p.steps = 2;
  for (const int length : {0, 3}) {
    p.lengths.set(1, length);
    EXPECT_THROW(call(), InternalError);
  }
  p.lengths.set(1, 2);
  p.slots.set(1, 13);  // the cache has 13 rows
  EXPECT_THROW(call(), InternalError);
  p.slots.set(1, 12);
  p.spec.value_width = 5;
  EXPECT_THROW(call(), InternalError);
}

}  // namespace
}  // namespace octavo::testkit
