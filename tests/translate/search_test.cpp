#include "translate/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "tests/translate/hand_made_scorer.h"

namespace octavo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testkit::Distribution;
using testkit::Ids;
using testkit::kEos;
using testkit::kFirstPiece;
using testkit::random_distribution;
using testkit::search_by;

constexpr std::int32_t A = kFirstPiece, B = kFirstPiece + 1, C = kFirstPiece + 2;

SearchRules rules_of(SearchPreset preset, int beam, int nbest = 1) {
  return search_rules({.preset = preset, .beam = beam}, nbest);
}

/// A distribution from a table of probabilities by prefix; what it doesn't name ends at once.
Distribution table(const std::map<Ids, std::map<std::int32_t, double>>& probabilities,
                   std::size_t vocabulary = kFirstPiece + 3) {
  return [=](std::size_t, const Ids& prefix) {
    std::vector<double> p(vocabulary, std::log(1e-9));
    const auto found = probabilities.find(prefix);
    if (found == probabilities.end()) {
      p[kEos] = 0;
    } else {
      for (const auto& [id, probability] : found->second) {
        p[static_cast<std::size_t>(id)] = std::log(probability);
      }
    }
    return p;
  };
}

TEST(BeamSearch, FindsWhatGreedySearchMisses) {
  const Distribution d = table({{{}, {{A, 0.6}, {B, 0.4}}},
                                {{A}, {{kEos, 0.3}, {C, 0.35}, {B, 0.35}}},
                                {{B}, {{kEos, 0.9}, {C, 0.1}}}});
  for (const SearchPreset preset :
       {SearchPreset::transformer, SearchPreset::fairseq, SearchPreset::marian}) {
    const auto greedy = search_by(d, 7, rules_of(preset, 1), {10});
    EXPECT_THAT(greedy[0][0].ids, ElementsAre(A, B));  // the tie goes to the lower id
    const auto wide = search_by(d, 7, rules_of(preset, 2), {10});
    EXPECT_THAT(wide[0][0].ids, ElementsAre(B));
    EXPECT_NEAR(wide[0][0].log_probability, std::log(0.4 * 0.9), 1e-12);
    EXPECT_TRUE(wide[0][0].ended);
  }
}

TEST(BeamSearch, ScoresByEachPresetsPenalty) {
  const Distribution d = table({{{}, {{A, 0.9}}}, {{A}, {{B, 0.9}}}, {{A, B}, {{kEos, 0.9}}}});
  const double log_probability = 3 * std::log(0.9);
  const auto score = [&](SearchConfig config) {
    config.beam = 1;
    const auto found = search_by(d, 7, search_rules(config), {10});
    EXPECT_NEAR(found[0][0].log_probability, log_probability, 1e-12);
    return found[0][0].score;
  };
  EXPECT_NEAR(score({.preset = SearchPreset::transformer}),
              log_probability / std::pow(8.0 / 6.0, 0.6), 1e-12);
  EXPECT_NEAR(score({.preset = SearchPreset::fairseq}), log_probability / 3, 1e-12);
  EXPECT_NEAR(score({.preset = SearchPreset::fairseq, .length_penalty = 0.6}),
              log_probability / std::pow(3.0, 0.6), 1e-12);
  EXPECT_NEAR(score({.preset = SearchPreset::marian}), log_probability / 3, 1e-12);
  EXPECT_NEAR(score({.preset = SearchPreset::marian, .length_penalty = 0}), log_probability, 1e-12);
}

// What each preset does where the others do something else.
TEST(BeamSearch, PresetsDifferOnEmptyTranslations) {
  const Distribution d = table({{{}, {{kEos, 0.8}, {A, 0.2}}}});
  EXPECT_THAT(search_by(d, 7, rules_of(SearchPreset::transformer, 4), {10})[0][0].ids, IsEmpty());
  EXPECT_THAT(search_by(d, 7, rules_of(SearchPreset::marian, 4), {10})[0][0].ids, IsEmpty());
  EXPECT_THAT(search_by(d, 7, rules_of(SearchPreset::fairseq, 4), {10})[0][0].ids, ElementsAre(A));
}

TEST(BeamSearch, PresetsDifferAtTheLimit) {
  const Distribution never_ends = [](std::size_t, const Ids&) {
    std::vector<double> p(10, std::log(1e-9));
    p[A] = std::log(0.9);
    p[B] = std::log(0.1);
    p[kEos] = -50;
    return p;
  };
  const auto at_limit = [&](SearchPreset preset) {
    return search_by(never_ends, 10, rules_of(preset, 2), {3})[0][0];
  };
  const Translation transformer = at_limit(SearchPreset::transformer);
  EXPECT_THAT(transformer.ids, ElementsAre(A, A, A));
  EXPECT_FALSE(transformer.ended);
  const Translation fairseq = at_limit(SearchPreset::fairseq);
  EXPECT_THAT(fairseq.ids, ElementsAre(A, A));
  EXPECT_TRUE(fairseq.ended);
  EXPECT_NEAR(fairseq.log_probability, 2 * std::log(0.9) - 50, 1e-9);
  const Translation marian = at_limit(SearchPreset::marian);
  EXPECT_THAT(marian.ids, ElementsAre(A, A, A));
  EXPECT_FALSE(marian.ended);
  EXPECT_NEAR(marian.score, std::log(0.9), 1e-12);
}

TEST(BeamSearch, ALimitOfOneGivesTheEmptyTranslationOrOnePiece) {
  const Distribution d = table({{{}, {{kEos, 0.3}, {A, 0.7}}}});
  const auto at_one = [&](SearchPreset preset) {
    return search_by(d, 7, rules_of(preset, 2), {1})[0][0];
  };
  EXPECT_THAT(at_one(SearchPreset::transformer).ids, IsEmpty());  // it has finished, A has not
  EXPECT_THAT(at_one(SearchPreset::fairseq).ids, IsEmpty());      // EOS is forced
  EXPECT_THAT(at_one(SearchPreset::marian).ids, ElementsAre(A));  // both count as finished
}

TEST(BeamSearch, FairseqTakesTheFirstToFinishAndTransformerTheBest) {
  const Distribution d = table({{{}, {{A, 0.5}, {B, 0.5}}},
                                {{A}, {{kEos, 0.4}, {C, 0.3}, {A, 0.3}}},
                                {{B}, {{kEos, 0.4}, {C, 0.3}, {A, 0.3}}}});
  SearchRules rules = rules_of(SearchPreset::fairseq, 2);
  EXPECT_THAT(search_by(d, 7, rules, {10})[0][0].ids, ElementsAre(A));
  // [A, A] ends with the better score, log(0.15) / 3, but two had finished before it.
  const double score = rules.score(std::log(0.15), 3);
  EXPECT_GT(score, rules.score(std::log(0.2), 2));
  rules = rules_of(SearchPreset::transformer, 2);
  rules.penalty = LengthPenalty::power;
  rules.alpha = 1;
  const Translation best = search_by(d, 7, rules, {10})[0][0];
  EXPECT_THAT(best.ids, ElementsAre(A, A));
  EXPECT_NEAR(best.score, score, 1e-12);
}

/// Every complete translation within the limit with its score, best first.
std::vector<Translation> enumerate(const Distribution& d, std::size_t vocabulary,
                                   const SearchRules& rules, std::int64_t limit) {
  std::vector<Translation> all;
  const std::function<void(const Ids&, double)> grow = [&](const Ids& prefix, double so_far) {
    const std::vector<double> p = d(0, prefix);
    const auto length = static_cast<std::int64_t>(prefix.size()) + 1;
    if (length >= rules.shortest) {
      const double log_probability = so_far + p[kEos];
      all.push_back({prefix, log_probability, rules.score(log_probability, length), true});
    }
    if (rules.force_end && length == limit) return;
    for (std::size_t v = kFirstPiece; v < vocabulary; ++v) {
      Ids longer = prefix;
      longer.push_back(static_cast<std::int32_t>(v));
      if (length < limit) {
        grow(longer, so_far + p[v]);
      } else if (rules.keep_unfinished) {
        const double log_probability = so_far + p[v];
        all.push_back({longer, log_probability, rules.score(log_probability, length), false});
      }
    }
  };
  grow({}, 0);
  std::stable_sort(all.begin(), all.end(),
                   [](const Translation& a, const Translation& b) { return a.score > b.score; });
  return all;
}

class Exhaustive : public ::testing::TestWithParam<SearchPreset> {};

TEST_P(Exhaustive, AWideBeamFindsTheBestOfAll) {
  constexpr std::size_t kVocabulary = kFirstPiece + 3;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Distribution d = random_distribution(seed, kVocabulary, seed % 3 == 0 ? -4 : 0);
    // 3^5 prefixes and their ends all fit into the beam.
    SearchRules rules = rules_of(GetParam(), 700, seed % 2 == 0 ? 1 : 20);
    if (seed % 5 == 0) rules.shortest = 4;
    const std::vector<Translation> all = enumerate(d, kVocabulary, rules, 5);
    const std::vector<Translation> found = search_by(d, kVocabulary, rules, {5})[0];
    ASSERT_EQ(found.size(), static_cast<std::size_t>(rules.nbest));
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].ids, all[i].ids) << "seed " << seed << ", place " << i;
      ASSERT_NEAR(found[i].score, all[i].score, 1e-12);
      ASSERT_EQ(found[i].ended, all[i].ended);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, Exhaustive,
                         ::testing::Values(SearchPreset::transformer, SearchPreset::fairseq,
                                           SearchPreset::marian));

TEST(BeamSearch, GreedyIsTheChainOfLikeliestPieces) {
  constexpr std::size_t kVocabulary = 20;
  const Distribution d = random_distribution(5, kVocabulary);
  for (const SearchPreset preset : {SearchPreset::transformer, SearchPreset::marian}) {
    for (std::size_t sentence = 0; sentence < 20; ++sentence) {
      Ids chain;
      while (chain.size() < 30) {
        const std::vector<double> p = d(sentence, chain);
        std::int32_t best = kEos;
        for (std::size_t v = kFirstPiece; v < kVocabulary; ++v) {
          if (p[v] > p[static_cast<std::size_t>(best)]) best = static_cast<std::int32_t>(v);
        }
        if (best == kEos) break;
        chain.push_back(best);
      }
      const Distribution of_this = [&](std::size_t, const Ids& prefix) {
        return d(sentence, prefix);
      };
      const auto found = search_by(of_this, kVocabulary, rules_of(preset, 1), {30});
      EXPECT_EQ(found[0][0].ids, chain);
    }
  }
}

// The likeliest piece is EOS at once.
TEST(BeamSearch, NothingShorterThanAskedForIsFound) {
  const Distribution d = random_distribution(3, 9, 6);
  for (const SearchPreset preset :
       {SearchPreset::transformer, SearchPreset::fairseq, SearchPreset::marian}) {
    for (const int beam : {1, 3}) {
      for (const int shortest : {1, 2, 5, 10}) {
        const SearchRules rules = search_rules(
            {.preset = preset, .beam = beam, .length_penalty = 0, .min_length = shortest});
        const auto found = search_by(d, 9, rules, {10})[0][0];
        EXPECT_EQ(found.ids.size() + 1, static_cast<std::size_t>(shortest)) << "beam " << beam;
      }
    }
  }
}

TEST(BeamSearch, ABatchFindsWhatEachSentenceFindsAlone) {
  constexpr std::size_t kVocabulary = 11, kSentences = 17;
  for (const SearchPreset preset :
       {SearchPreset::transformer, SearchPreset::fairseq, SearchPreset::marian}) {
    const Distribution d = random_distribution(7, kVocabulary, 1);
    const SearchRules rules = rules_of(preset, 3, 3);
    std::vector<std::int64_t> limits;
    for (std::size_t b = 0; b < kSentences; ++b) limits.push_back(1 + static_cast<int>(b * 5 % 13));
    const auto together = search_by(d, kVocabulary, rules, limits);
    ASSERT_EQ(together.size(), kSentences);
    for (std::size_t b = 0; b < kSentences; ++b) {
      const Distribution of_this = [&](std::size_t, const Ids& prefix) { return d(b, prefix); };
      const auto alone = search_by(of_this, kVocabulary, rules, {limits[b]})[0];
      ASSERT_EQ(together[b].size(), alone.size());
      for (std::size_t i = 0; i < alone.size(); ++i) {
        EXPECT_EQ(together[b][i].ids, alone[i].ids);
        EXPECT_EQ(together[b][i].score, alone[i].score);
        EXPECT_LE(static_cast<std::int64_t>(alone[i].ids.size()), limits[b]);
      }
    }
  }
}

TEST(BeamSearch, DoneSentencesLeaveTheBatch) {
  // Sentence b is the piece A, b times.
  const Distribution d = [](std::size_t sentence, const Ids& prefix) {
    std::vector<double> p(7, std::log(1e-6));
    p[prefix.size() < sentence ? A : kEos] = 0;
    return p;
  };
  testkit::HandMadeScorer scorer(d, 5, 1);
  const std::vector<std::int64_t> limits(5, 10);
  const auto found =
      beam_search(scorer, rules_of(SearchPreset::marian, 1), testkit::kFrame, limits);
  for (std::size_t b = 0; b < 5; ++b) EXPECT_EQ(found[b][0].ids, Ids(b, A));
  EXPECT_THAT(scorer.row_counts, ElementsAre(5, 4, 3, 2, 1));
}

TEST(BeamSearch, TransformerStopsAsSoonAsNothingCanWin) {
  const Distribution d = table({{{}, {{A, 0.9}, {B, 0.1}}}});
  testkit::HandMadeScorer scorer(d, 1, 4);
  const std::vector<std::int64_t> limits{60};
  const auto found =
      beam_search(scorer, rules_of(SearchPreset::transformer, 2), testkit::kFrame, limits);
  EXPECT_THAT(found[0][0].ids, ElementsAre(A));
  EXPECT_EQ(scorer.row_counts.size(), 2u);
}

TEST(BeamSearch, AnEmptyBatchAsksForNothing) {
  testkit::HandMadeScorer scorer(random_distribution(1, 9), 0, 3);
  EXPECT_THAT(beam_search(scorer, rules_of(SearchPreset::fairseq, 3), testkit::kFrame, {}),
              IsEmpty());
  EXPECT_THAT(scorer.row_counts, IsEmpty());
}

TEST(BeamSearch, RefusesWhatIsNoNumber) {
  const Distribution d = [](std::size_t, const Ids&) {
    return std::vector<double>(9, std::numeric_limits<double>::quiet_NaN());
  };
  EXPECT_THROW(search_by(d, 9, rules_of(SearchPreset::transformer, 2), {9}), UserError);
}

TEST(SearchRules, OverridesAndLimits) {
  const SearchRules transformer = search_rules({});
  EXPECT_EQ(transformer.beam, 4);
  EXPECT_EQ(transformer.limit(20, 1024), 70);
  EXPECT_EQ(transformer.limit(1000, 1024), 1024);
  EXPECT_EQ(search_rules({.preset = SearchPreset::fairseq}).limit(20, 1024), 201);
  EXPECT_EQ(search_rules({.preset = SearchPreset::marian}).limit(20, 1024), 60);
  const SearchRules own = search_rules(
      {.preset = SearchPreset::marian, .beam = 7, .length_penalty = 0.3, .max_length = 9}, 7);
  EXPECT_EQ(own.beam, 7);
  EXPECT_EQ(own.alpha, 0.3);
  EXPECT_EQ(own.limit(20, 1024), 9);
  EXPECT_EQ(own.nbest, 7);
  EXPECT_THROW(search_rules({.beam = 3}, 4), UserError);
}

}  // namespace
}  // namespace octavo
