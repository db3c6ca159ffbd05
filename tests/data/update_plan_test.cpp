#include "data/update_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "core/error.h"

namespace octavo {
namespace {

std::int32_t length_of(SentenceRef s) {
  return static_cast<std::int32_t>(1 + (s.index * 7 + s.corpus * 3) % 41);
}

EpochPlan::Lengths known_lengths() {
  return [](const EpochPlan& plan, std::int64_t first, std::span<std::int32_t> lengths) {
    for (std::size_t i = 0; i < lengths.size(); ++i)
      lengths[i] = length_of(plan.sentence(first + static_cast<std::int64_t>(i)));
  };
}

EpochPlan make(std::uint64_t seed, std::int64_t epoch, const std::vector<CorpusShare>& shares,
               std::int64_t tokens = 500) {
  return EpochPlan({.seed = seed, .epoch = epoch, .tokens_per_update = tokens}, shares,
                   known_lengths());
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> order_of(const EpochPlan& plan) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order;
  for (std::int64_t d = 0; d < plan.draws(); ++d)
    order.emplace_back(plan.sentence(d).corpus, plan.sentence(d).index);
  return order;
}

TEST(EpochPlan, DrawsEverySentenceOnce) {
  for (const std::int64_t n : {1, 2, 3, 64, 8191, 8192, 8193, 20011}) {
    const EpochPlan plan = make(1, 0, {{.sentences = n}});
    const auto order = order_of(plan);
    EXPECT_EQ(static_cast<std::int64_t>(order.size()), n);
    EXPECT_EQ(static_cast<std::int64_t>(std::set(order.begin(), order.end()).size()), n);
  }
}

TEST(EpochPlan, UpdatesCoverTheDrawsAndReachTheirTokens) {
  EpochPlan plan = make(3, 2, {{.sentences = 9973}, {.sentences = 0}, {.sentences = 5}});
  std::int64_t draw = 0;
  const std::int64_t updates = plan.updates();
  for (std::int64_t k = 0; k < updates; ++k) {
    const DrawRange range = plan.update(k);
    EXPECT_EQ(range.begin, draw);
    std::int64_t tokens = 0;
    for (; draw < range.end; ++draw) {
      EXPECT_LT(tokens, 500) << "update " << k << " was complete before draw " << draw;
      tokens += length_of(plan.sentence(draw));
    }
    EXPECT_TRUE(tokens >= 500 || k + 1 == updates);
  }
  EXPECT_EQ(draw, plan.draws());
  EXPECT_FALSE(plan.has(updates));
  EXPECT_FALSE(plan.has(-1));
  EXPECT_THROW(plan.update(updates), InternalError);
}

TEST(EpochPlan, IsAPureFunctionOfSeedEpochAndShares) {
  const std::vector<CorpusShare> shares{{.sentences = 1000, .weight = 1.3}, {.sentences = 70}};
  EXPECT_EQ(order_of(make(5, 9, shares)), order_of(make(5, 9, shares)));
  EXPECT_NE(order_of(make(5, 9, shares)), order_of(make(5, 10, shares)));
  EXPECT_NE(order_of(make(5, 9, shares)), order_of(make(6, 9, shares)));
  // The size of an update cuts the order and does not change it.
  EXPECT_EQ(order_of(make(5, 9, shares, 10)), order_of(make(5, 9, shares, 10000)));
}

TEST(EpochPlan, PlansAlikeInAnyOrderOfAsking) {
  EpochPlan forward = make(8, 1, {{.sentences = 30000}}),
            at_once = make(8, 1, {{.sentences = 30000}});
  const std::int64_t updates = at_once.updates();
  for (std::int64_t k = 0; k < updates; ++k) {
    ASSERT_TRUE(forward.has(k));
    ASSERT_EQ(forward.update(k), at_once.update(k));
  }
  EXPECT_FALSE(forward.has(updates));
}

TEST(EpochPlan, AsksForLengthsOnlyAsFarAsNeeded) {
  std::int64_t asked = 0;
  EpochPlan plan({.seed = 1, .epoch = 0, .tokens_per_update = 100}, {{.sentences = 100000}},
                 [&](const EpochPlan&, std::int64_t first, std::span<std::int32_t> lengths) {
                   EXPECT_EQ(first, asked) << "a length was asked for twice or left out";
                   asked = first + static_cast<std::int64_t>(lengths.size());
                   std::fill(lengths.begin(), lengths.end(), 10);
                 });
  EXPECT_EQ(plan.update(3), (DrawRange{.begin = 30, .end = 40}));
  EXPECT_LT(asked, 10000);
  EXPECT_EQ(plan.updates(), 10000);
  EXPECT_EQ(asked, 100000);
}

TEST(EpochPlan, WeightsAreWholePassesAndAFreshFraction) {
  const std::vector<CorpusShare> shares{{.sentences = 1001, .weight = 2.25},
                                        {.sentences = 400, .weight = 0.5},
                                        {.sentences = 9, .weight = 0}};
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> seen[2];
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const auto& s : order_of(make(4, epoch, shares))) ++seen[epoch][s];
    std::map<std::uint32_t, std::map<int, int>> times;  // corpus -> times seen -> sentences
    for (const auto& [sentence, count] : seen[epoch]) ++times[sentence.first][count];
    EXPECT_EQ(times, (std::map<std::uint32_t, std::map<int, int>>{{0, {{2, 751}, {3, 250}}},
                                                                  {1, {{1, 200}}}}));
  }
  EXPECT_NE(seen[0], seen[1]) << "both epochs saw the same fraction";
}

TEST(EpochPlan, ShufflesUniformly) {
  // Where the first of five sentences lands, over many epochs: each place about equally often.
  std::map<std::int64_t, int> places;
  constexpr int kEpochs = 5000;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const EpochPlan plan = make(2, epoch, {{.sentences = 5}});
    for (std::int64_t d = 0; d < 5; ++d) places[d] += plan.sentence(d).index == 0;
  }
  double chi2 = 0;
  for (const auto& [place, count] : places) chi2 += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi2, 18.5);  // 4 degrees of freedom, p = 0.001
}

TEST(EpochPlan, LengthDoesNotDecideTheOrder) {
  // The mean length of an epoch's first tenth is the corpus' mean, within chance.
  EpochPlan plan = make(12, 0, {{.sentences = 50000}});
  double all = 0, early = 0;
  for (std::int64_t d = 0; d < plan.draws(); ++d) {
    all += length_of(plan.sentence(d));
    if (d < 5000) early += length_of(plan.sentence(d));
  }
  EXPECT_NEAR(early / 5000, all / 50000, 4 * 12.0 / std::sqrt(5000.0));
}

TEST(EpochPlan, OneLongSentenceIsAnUpdate) {
  EpochPlan plan = make(1, 0, {{.sentences = 4}}, 1);
  EXPECT_EQ(plan.updates(), 4);
}

TEST(EpochPlan, RefusesAnEmptyEpoch) {
  EXPECT_THROW(make(1, 0, {}), UserError);
  EXPECT_THROW(make(1, 0, {{.sentences = 0}}), UserError);
  EXPECT_THROW(make(1, 0, {{.sentences = 10, .weight = 0.01}}), UserError);
  EXPECT_THROW(make(1, 0, {{.sentences = std::int64_t{1} << 32}}), UserError);
}

}  // namespace
}  // namespace octavo
