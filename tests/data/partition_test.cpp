#include "data/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/philox.h"
#include "core/token_batch.h"

namespace octavo {
namespace {

constexpr BatchLimits kLimits{.source_tokens = 4096,
                              .target_tokens = 4096,
                              .sentences = 512,
                              .longest = 256,
                              .sum_squares = 400000};

std::string number(std::uint32_t i) {
  return "sentence " + std::to_string(i);
}

/// Log-normal lengths around 23 tokens as in news text, both sides alike.
std::vector<PairLength> realistic(std::size_t n, std::uint64_t seed) {
  RandomStream random(seed);
  std::vector<PairLength> pairs(n);
  for (PairLength& p : pairs) {
    const double source = std::exp(3.0 + 0.6 * random.normal());
    const double target = source * std::exp(0.2 * random.normal());
    p = {.source = static_cast<std::int32_t>(std::clamp(source, 2.0, 250.0)),
         .target = static_cast<std::int32_t>(std::clamp(target, 2.0, 250.0))};
  }
  return pairs;
}

void expect_sound(std::span<const PairLength> update, int ranks, const BatchLimits& limits,
                  const Partition& p) {
  ASSERT_EQ(p.first.size(), static_cast<std::size_t>(ranks) + 1);
  std::vector<int> times(update.size(), 0);
  for (int r = 0; r < ranks; ++r) {
    std::int64_t cost = 0;
    for (const MicroBatch& m : p.of_rank(r)) {
      EXPECT_FALSE(p.sentences(m).empty());
      std::int64_t n = 0, s = 0, t = 0, ss = 0, tt = 0, longest = 0;
      for (const std::uint32_t i : p.sentences(m)) {
        ++times[i];
        ++n;
        s += update[i].source;
        t += update[i].target;
        ss += std::int64_t{update[i].source} * update[i].source;
        tt += std::int64_t{update[i].target} * update[i].target;
        longest = std::max<std::int64_t>({longest, update[i].source, update[i].target});
        cost += pair_cost(update[i]);
      }
      EXPECT_LE(n, limits.sentences);
      EXPECT_LE(round_up(s, kRowMultiple), limits.source_tokens);
      EXPECT_LE(round_up(t, kRowMultiple), limits.target_tokens);
      EXPECT_LE(std::max(ss, tt), limits.sum_squares);
      EXPECT_LE(longest, limits.longest);
    }
    EXPECT_EQ(cost, p.costs[static_cast<std::size_t>(r)]);
  }
  EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](int k) { return k == 1; }));
}

double imbalance(const Partition& p) {
  const double sum = std::accumulate(p.costs.begin(), p.costs.end(), 0.0);
  const double most = static_cast<double>(*std::max_element(p.costs.begin(), p.costs.end()));
  return most / (sum / static_cast<double>(p.costs.size()));
}

TEST(Partition, EverySentenceOnceAndNoLimitExceeded) {
  Partition p;
  for (const std::size_t n : {0, 1, 2, 3, 17, 100, 1013, 5000}) {
    const auto update = realistic(n, n + 1);
    for (const int ranks : {1, 2, 3, 7, 8, 64}) {
      partition(update, ranks, kLimits, number, p);
      expect_sound(update, ranks, kLimits, p);
    }
  }
}

TEST(Partition, EachLimitBinds) {
  const auto update = realistic(600, 3);
  Partition p;
  partition(update, 1, kLimits, number, p);
  const std::size_t usual = p.micro_batches.size();
  for (auto [field, value] : {std::pair{&BatchLimits::source_tokens, 300},
                              {&BatchLimits::target_tokens, 300},
                              {&BatchLimits::sentences, 5},
                              {&BatchLimits::sum_squares, 62500}}) {
    BatchLimits limits = kLimits;
    limits.*field = value;
    partition(update, 2, limits, number, p);
    expect_sound(update, 2, limits, p);
    EXPECT_GT(p.micro_batches.size(), usual);
  }
}

TEST(Partition, RanksAreBalanced) {
  Partition p;
  for (const int ranks : {2, 8, 16}) {
    // 25,000 target tokens, the recipe of the Transformer paper.
    const auto update = realistic(1050, 77);
    partition(update, ranks, kLimits, number, p);
    EXPECT_LT(imbalance(p), 1.01) << ranks << " ranks";
  }
  std::vector<PairLength> unequal = realistic(200, 5);
  unequal[11] = {.source = 250, .target = 250};
  unequal[90] = {.source = 250, .target = 3};
  partition(unequal, 4, kLimits, number, p);
  EXPECT_LT(imbalance(p), 1.02);
}

TEST(Partition, MicroBatchesOfARankAreEven) {
  const auto update = realistic(1050, 78);
  Partition p;
  partition(update, 1, kLimits, number, p);
  std::int64_t least = INT64_MAX, most = 0, tokens = 0;
  for (const MicroBatch& m : p.of_rank(0)) {
    std::int64_t cost = 0;
    for (const std::uint32_t i : p.sentences(m)) {
      cost += pair_cost(update[i]);
      tokens += update[i].target;
    }
    least = std::min(least, cost);
    most = std::max(most, cost);
  }
  EXPECT_LT(static_cast<double>(most), 1.25 * static_cast<double>(least));
  // Not many more than a perfect packing would need.
  EXPECT_LE(static_cast<std::int64_t>(p.micro_batches.size()), tokens / 4096 + 2);
}

TEST(Partition, MicroBatchesHoldSimilarLengths) {
  const auto update = realistic(1000, 79);
  Partition p;
  partition(update, 2, kLimits, number, p);
  for (int r = 0; r < 2; ++r) {
    std::int32_t before = INT32_MAX;
    for (const MicroBatch& m : p.of_rank(r)) {
      for (const std::uint32_t i : p.sentences(m)) {
        EXPECT_LE(update[i].target, before);
        before = update[i].target;
      }
    }
  }
}

TEST(Partition, MoreRanksThanSentences) {
  const auto update = realistic(3, 1);
  Partition p;
  partition(update, 5, kLimits, number, p);
  expect_sound(update, 5, kLimits, p);
  EXPECT_EQ(p.micro_batches.size(), 3u);
  EXPECT_EQ(std::count(p.costs.begin(), p.costs.end(), 0), 2);
}

TEST(Partition, IsDeterministicAndForgetsTheLastUpdate) {
  const auto update = realistic(777, 6);
  Partition fresh, used;
  partition(realistic(5000, 7), 9, kLimits, number, used);
  partition(update, 4, kLimits, number, fresh);
  partition(update, 4, kLimits, number, used);
  EXPECT_EQ(fresh.order, used.order);
  EXPECT_EQ(fresh.first, used.first);
  EXPECT_EQ(fresh.costs, used.costs);
  EXPECT_EQ(fresh.micro_batches.size(), used.micro_batches.size());
}

TEST(Partition, EqualLengthsKeepTheirDrawnOrder) {
  const std::vector<PairLength> update(64, {.source = 10, .target = 10});
  Partition p;
  partition(update, 1, kLimits, number, p);
  EXPECT_TRUE(std::is_sorted(p.order.begin(), p.order.end()));
}

TEST(Partition, NamesASentenceThatFitsNowhere) {
  std::vector<PairLength> update = realistic(10, 4);
  const auto message = [&](PairLength pair, const BatchLimits& limits) -> std::string {
    update[6] = pair;
    Partition p;
    try {
      partition(update, 2, limits, number, p);
    } catch (const UserError& e) {
      return e.what();
    }
    return "nothing thrown";
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(message({257, 10}, kLimits), HasSubstr("sentence 6: 257 source and 10 target"));
  EXPECT_THAT(message({10, 257}, kLimits), HasSubstr("'longest'"));
  BatchLimits limits = kLimits;
  limits.target_tokens = 255;  // 200 tokens take 256 rows
  EXPECT_THAT(message({10, 200}, limits), HasSubstr("'target_tokens'"));
  limits = kLimits;
  limits.sum_squares = 200 * 200 - 1;
  EXPECT_THAT(message({200, 10}, limits), HasSubstr("'sum_squares'"));
}

TEST(Partition, CostGrowsWithBothSidesAndFasterThanLinear) {
  EXPECT_GT(pair_cost({10, 11}), pair_cost({10, 10}));
  EXPECT_GT(pair_cost({11, 10}), pair_cost({10, 10}));
  EXPECT_GT(pair_cost({200, 200}), 2 * pair_cost({100, 100}));
}

}  // namespace
}  // namespace octavo
