#include "eval/bleu.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "core/lines.h"
#include "core/version.h"

namespace octavo {
namespace {

const std::string kGolden = std::string(OCTAVO_SOURCE_DIR) + "/tests/golden/";
const std::string kSample = std::string(OCTAVO_SOURCE_DIR) + "/tests/samples/libreoffice-help/";

BleuSettings settings_of(const nlohmann::json& expected) {
  BleuSettings settings{.lowercase = expected["lowercase"].get<bool>()};
  bool found = false;
  for (const auto& [value, name] : EnumNames<BleuTokenize>::values) {
    if (name != expected["tokenize"].get<std::string>()) continue;
    settings.tokenize = value;
    found = true;
  }
  EXPECT_TRUE(found) << expected["tokenize"];
  return settings;
}

std::string joined(std::span<const std::string_view> tokens) {
  std::string line;
  for (const std::string_view token : tokens) {
    if (!line.empty()) line += ' ';
    line += token;
  }
  return line;
}

BleuStatistics count(const BleuSettings& settings, const std::vector<std::string>& hypotheses,
                     const std::vector<std::string>& references) {
  BleuCounter counter(settings);
  for (std::size_t i = 0; i < hypotheses.size(); ++i) counter.add(hypotheses[i], references[i]);
  return counter.statistics();
}

// sacreBLEU's own version stands where ours does; all else must be equal, letter by letter.
std::string with_our_version(std::string line, const std::string& theirs) {
  const std::string from = "version:" + theirs;
  return line.replace(line.find(from), from.size(), "version:octavo-" + std::string(kVersion));
}

void expect_score(const nlohmann::json& expected, const std::string& sacrebleu,
                  const BleuSettings& settings, const BleuStatistics& statistics) {
  const BleuScore score = bleu_score(statistics);
  for (int n = 1; n <= kBleuOrder; ++n) {
    EXPECT_EQ(statistics.matched(n), expected["counts"][n - 1].get<std::int64_t>());
    EXPECT_EQ(statistics.total(n), expected["totals"][n - 1].get<std::int64_t>());
    EXPECT_DOUBLE_EQ(score.precisions[n - 1], expected["precisions"][n - 1].get<double>());
  }
  EXPECT_EQ(score.hypothesis_tokens, expected["hyp_len"].get<std::int64_t>());
  EXPECT_EQ(score.reference_tokens, expected["ref_len"].get<std::int64_t>());
  EXPECT_DOUBLE_EQ(score.score, expected["score"].get<double>());
  EXPECT_DOUBLE_EQ(score.brevity_penalty, expected["bp"].get<double>());
  EXPECT_DOUBLE_EQ(score.ratio, expected["ratio"].get<double>());
  EXPECT_EQ(bleu_signature(settings),
            with_our_version(expected["signature"].get<std::string>(), sacrebleu));
  EXPECT_EQ(bleu_line(score, settings),
            with_our_version(expected["line"].get<std::string>(), sacrebleu));
}

TEST(Bleu, TokensAndCountsOfEveryOddLineAreSacrebleus) {
  const auto golden = nlohmann::json::parse(read_file(kGolden + "bleu_odd.json"));
  const auto references = read_lines(kGolden + "bleu_odd.ref");
  const auto hypotheses = read_lines(kGolden + "bleu_odd.hyp");
  ASSERT_EQ(references.size(), hypotheses.size());
  ASSERT_EQ(golden["cases"].size(), 8U);
  for (const auto& expected : golden["cases"]) {
    SCOPED_TRACE(expected["signature"].get<std::string>());
    const BleuSettings settings = settings_of(expected);
    BleuTokenizer tokenizer(settings.tokenize, settings.lowercase);
    ASSERT_EQ(expected["tokens"].size(), 2 * references.size());
    for (std::size_t i = 0; i < references.size(); ++i) {
      SCOPED_TRACE("line " + std::to_string(i + 1));
      EXPECT_EQ(joined(tokenizer(references[i])), expected["tokens"][i].get<std::string>());
      EXPECT_EQ(joined(tokenizer(hypotheses[i])),
                expected["tokens"][references.size() + i].get<std::string>());
      const auto counts = expected["statistics"][i].get<std::vector<std::int64_t>>();
      const BleuStatistics line = count(settings, {hypotheses[i]}, {references[i]});
      EXPECT_EQ(std::vector<std::int64_t>(line.counts.begin(), line.counts.end()), counts);
    }
    expect_score(expected, golden["sacrebleu"], settings, count(settings, hypotheses, references));
  }
}

TEST(Bleu, ScoresOfRealTextAreSacrebleus) {
  const auto golden = nlohmann::json::parse(read_file(kGolden + "bleu_sample.json"));
  ASSERT_EQ(golden["cases"].size(), 16U);
  for (const auto& expected : golden["cases"]) {
    SCOPED_TRACE(expected["line"].get<std::string>());
    const std::string reference = kSample + "dev." + expected["language"].get<std::string>();
    const BleuSettings settings = settings_of(expected);
    expect_score(expected, golden["sacrebleu"], settings,
                 count(settings, read_lines(reference + ".perturbed"), read_lines(reference)));
  }
}

TEST(Bleu, StatisticsOfPartsAdd) {
  const auto references = read_lines(kSample + "dev.de");
  const auto hypotheses = read_lines(kSample + "dev.de.perturbed");
  const BleuStatistics whole = count({}, hypotheses, references);
  BleuStatistics sum;
  for (std::size_t begin = 0; begin < references.size(); begin += 67) {
    const std::size_t end = std::min(references.size(), begin + 67);
    sum += count({}, {hypotheses.begin() + begin, hypotheses.begin() + end},
                 {references.begin() + begin, references.begin() + end});
  }
  EXPECT_EQ(sum.counts, whole.counts);
  EXPECT_GT(bleu_score(sum).score, 50);
}

TEST(Bleu, NothingScoresZero) {
  const BleuScore nothing = bleu_score({});
  EXPECT_EQ(nothing.score, 0);
  EXPECT_EQ(nothing.ratio, 0);
  EXPECT_EQ(nothing.brevity_penalty, 1);
  EXPECT_EQ(bleu_score(count({}, {""}, {"a b c d"})).brevity_penalty, 0);
  EXPECT_EQ(bleu_score(count({}, {"a b c"}, {"a b c"})).score, 0);  // no 4-gram at all
  EXPECT_DOUBLE_EQ(bleu_score(count({}, {"a b c d"}, {"a b c d"})).score, 100);
}

// Words and n-grams are found through hash tables that are used again for the next line: lines of
// very different lengths, one after the other, must not disturb each other.
TEST(Bleu, LongLinesAndShortOnesInTurn) {
  std::string line, other;
  for (int i = 0; i < 20000; ++i) {
    line += "w" + std::to_string(i % 7919) + " ";
    other += (i % 2 == 0 ? "w" : "v") + std::to_string(i % 7919) + " ";
  }
  BleuCounter counter({.tokenize = BleuTokenize::none});
  counter.add("a", "a");
  counter.add(line, line);
  counter.add("a b", "a");
  counter.add(other, line);
  counter.add("a", "b");
  const BleuStatistics& s = counter.statistics();
  // Word i of `other` is word i of `line` where i is even; 7919 is odd, so each number comes as
  // "w" and as "v", and all the "w" are found; no two neighbours are ever both "w".
  EXPECT_EQ(s.matched(1), 1 + 20000 + 1 + 10000);
  EXPECT_EQ(s.matched(2), 19999);
  EXPECT_EQ(s.matched(4), 19997);
  EXPECT_EQ(s.total(4), 2 * 19997);
}

TEST(BleuTokenizer, IllFormedUtf8CountsAsReplacementCharacter) {
  const std::string bad =
      "a\xff"
      "b \xc3 \xe2\x82 x\xed\xa0\x80";
  BleuTokenizer chars(BleuTokenize::chars, false);
  EXPECT_EQ(joined(chars("a\xff"
                         "b")),
            "a \xff b");
  for (const auto tokenize :
       {BleuTokenize::v13a, BleuTokenize::intl, BleuTokenize::chars, BleuTokenize::none})
    for (const bool lowercase : {false, true}) {
      BleuTokenizer tokenizer(tokenize, lowercase);
      EXPECT_GE(tokenizer(bad).size(), 4U);
    }
  BleuTokenizer intl(BleuTokenize::intl, true);
  EXPECT_EQ(joined(intl("A\xff"
                        "B")),
            "a \xef\xbf\xbd b");  // U+FFFD is a symbol
}

}  // namespace
}  // namespace octavo
