// The three searches once more, each written down by itself in the plainest way, on whole
// distributions of one sentence: beams too narrow to find the best of all must agree as well.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/translate/hand_made_scorer.h"

namespace octavo {
namespace {

using testkit::Distribution;
using testkit::Ids;
using testkit::kEos;
using testkit::kFirstPiece;

constexpr double kNever = -std::numeric_limits<double>::infinity();

struct Scored {
  Ids ids;  // EOS included
  double log_probability, score;
};

void sort_by_score(std::vector<Scored>& all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const Scored& a, const Scored& b) { return a.score > b.score; });
}

/// Every extension of `alive` by a piece that may be generated, likeliest first.
std::vector<Scored> extensions(const Distribution& d, std::size_t vocabulary,
                               const std::vector<Scored>& alive) {
  std::vector<Scored> all;
  for (const Scored& a : alive) {
    const std::vector<double> p = d(0, a.ids);
    for (std::size_t v = 0; v < vocabulary; ++v) {
      if (v != kEos && v < kFirstPiece) continue;
      Ids ids = a.ids;
      ids.push_back(static_cast<std::int32_t>(v));
      all.push_back({ids, a.log_probability + p[v], a.log_probability + p[v]});
    }
  }
  sort_by_score(all);
  return all;
}

bool ends(const Scored& s) {
  return s.ids.back() == kEos;
}

std::vector<Scored> transformer(const Distribution& d, std::size_t vocabulary, std::size_t beam,
                                std::int64_t limit) {
  const auto penalty = [](std::int64_t n) { return std::pow((5.0 + double(n)) / 6.0, 0.6); };
  std::vector<Scored> alive{{{}, 0, 0}}, finished;
  for (std::int64_t i = 0; i < limit; ++i) {
    std::vector<Scored> top = extensions(d, vocabulary, alive);
    top.resize(std::min(top.size(), 2 * beam));
    alive.clear();
    for (Scored& t : top) {
      t.score = t.log_probability / penalty(i + 1);
      if (ends(t)) {
        finished.push_back(t);
      } else if (alive.size() < beam) {
        alive.push_back(t);
      }
    }
    sort_by_score(finished);
    finished.resize(std::min(finished.size(), beam));
    const double bound = alive[0].log_probability / penalty(limit);
    const double lowest = finished.empty() ? kNever : finished.back().score;
    if (lowest > bound) break;
  }
  return finished.empty() ? alive : finished;
}

std::vector<Scored> fairseq(const Distribution& d, std::size_t vocabulary, std::size_t beam,
                            std::int64_t limit) {
  const std::int64_t max_len = limit - 1;
  std::vector<Scored> alive{{{}, 0, 0}}, finalized;
  for (std::int64_t step = 0; step <= max_len; ++step) {
    std::vector<Scored> candidates = extensions(d, vocabulary, alive);
    std::erase_if(candidates, [&](const Scored& c) {
      return (step == max_len && !ends(c)) || (step == 0 && step < max_len && ends(c));
    });
    candidates.resize(std::min(candidates.size(), 2 * beam));
    alive.clear();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      Scored& c = candidates[i];
      if (!ends(c)) {
        if (alive.size() < beam) alive.push_back(c);
      } else if (i < beam && finalized.size() < beam) {
        c.score = c.log_probability / double(step + 1);
        finalized.push_back(c);
      }
    }
    if (finalized.size() == beam) break;
  }
  sort_by_score(finalized);
  return finalized;
}

std::vector<Scored> marian(const Distribution& d, std::size_t vocabulary, std::size_t beam,
                           std::int64_t limit) {
  std::vector<Scored> alive{{{}, 0, 0}}, done;
  std::size_t width = beam;
  for (std::int64_t t = 1; width > 0; ++t) {
    std::vector<Scored> best = extensions(d, vocabulary, alive);
    best.resize(std::min(best.size(), width));
    alive.clear();
    for (Scored& b : best) {
      b.score = b.log_probability / double(t);
      if (ends(b)) --width;
      if (ends(b) || t >= limit) done.push_back(b);
      if (!ends(b)) alive.push_back(b);
    }
    if (t >= limit) break;
  }
  sort_by_score(done);
  return done;
}

using Reference = std::vector<Scored> (*)(const Distribution&, std::size_t, std::size_t,
                                          std::int64_t);

class SearchReference : public ::testing::TestWithParam<std::pair<SearchPreset, Reference>> {};

TEST_P(SearchReference, Agrees) {
  const auto& [preset, reference] = GetParam();
  int cut = 0, cases = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    // Vocabularies smaller than a beam are among them.
    const std::size_t vocabulary = kFirstPiece + 2 + seed % 9, beam = 2 + seed / 7 % 5;
    const auto limit = static_cast<std::int64_t>(1 + seed / 3 % 14);
    const Distribution d =
        testkit::random_distribution(seed, vocabulary, static_cast<double>(seed % 5) - 1);
    const SearchRules rules = search_rules({.preset = preset, .beam = static_cast<int>(beam)});
    const Translation found = testkit::search_by(d, vocabulary, rules, {limit})[0][0];
    const Scored expected = reference(d, vocabulary, beam, limit)[0];
    Ids ids = found.ids;
    if (found.ended) ids.push_back(kEos);
    ASSERT_EQ(ids, expected.ids) << "seed " << seed;
    ASSERT_NEAR(found.log_probability, expected.log_probability, 1e-12);
    if (found.ended) {
      ASSERT_NEAR(found.score, expected.score, 1e-12);
    }
    cut += !found.ended;
    ++cases;
  }
  EXPECT_LT(cut, cases / 2);
  EXPECT_EQ(cut == 0, preset == SearchPreset::fairseq);
}

INSTANTIATE_TEST_SUITE_P(
    Presets, SearchReference,
    ::testing::Values(std::pair<SearchPreset, Reference>{SearchPreset::transformer, transformer},
                      std::pair<SearchPreset, Reference>{SearchPreset::fairseq, fairseq},
                      std::pair<SearchPreset, Reference>{SearchPreset::marian, marian}));

}  // namespace
}  // namespace octavo
