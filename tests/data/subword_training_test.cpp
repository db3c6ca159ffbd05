#include "data/subword_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/error.h"
#include "tests/data/subword_samples.h"
#include "tests/testkit/child.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;
using testkit::encode;
using testkit::foreign_model;
using testkit::message_of;
using testkit::sample_lines;

TEST(SubwordTraining, SaysWhatToDoAboutTheVocabularySize) {
  for (const SubwordKind kind : {SubwordKind::bpe, SubwordKind::unigram}) {
    const auto message = [&](std::int64_t size, std::vector<std::string> lines) {
      return message_of<UserError>([&] {
        train_subwords({.kind = kind, .vocabulary_size = size, .character_coverage = 1.0}, lines);
      });
    };
    EXPECT_THAT(message(100000, sample_lines("test.en")),
                ::testing::ContainsRegex("only [0-9]+ different"));
    EXPECT_THAT(message(270, sample_lines("test.en")),
                ::testing::ContainsRegex("take 3[0-9][0-9]\\. Raise it"));
    EXPECT_THAT(message(300, {}), HasSubstr("no text"));
    EXPECT_THAT(message(300, {"", ""}), HasSubstr("no text"));
    EXPECT_THAT(message(300, {"a"}), HasSubstr("different pieces"));
  }
}

// Words are counted before the library sees them: it must learn what it learns from whole lines.
TEST(SubwordTraining, OfCountedWordsGivesTheModelOfWholeLines) {
  const std::string lines = foreign_model({{"model_type", "bpe"},
                                           {"vocab_size", "900"},
                                           {"character_coverage", "0.9995"},
                                           {"byte_fallback", "true"},
                                           {"pad_id", "0"},
                                           {"bos_id", "1"},
                                           {"eos_id", "2"},
                                           {"unk_id", "3"},
                                           {"normalization_rule_name", "identity"},
                                           {"remove_extra_whitespaces", "false"}});
  const std::string words = train_subwords(
      {.kind = SubwordKind::bpe, .vocabulary_size = 900, .character_coverage = 0.9995},
      sample_lines("test.de"));
  const Subwords expected(lines, "lines.model"), found(words, "words.model");
  for (std::int32_t id = 0; id < 900; ++id) {
    EXPECT_EQ(found.vocabulary().piece(id), expected.vocabulary().piece(id)) << id;
  }
}

TEST(SubwordTraining, OfBpeTakesTheMostFrequentWords) {
  std::vector<std::string> lines(100, "often often");
  lines.emplace_back("seldom seldom often");
  const auto pieces = [&](std::size_t most_words) {
    const std::string model = train_subwords({.kind = SubwordKind::bpe,
                                              .vocabulary_size = 271,
                                              .character_coverage = 1.0,
                                              .most_words = most_words},
                                             lines);
    const Subwords subwords(model, "x.model");
    std::set<std::string> found;
    for (std::int32_t id = 0; id < subwords.vocabulary().size(); ++id)
      found.insert(subwords.vocabulary().piece(id));
    return found;
  };
  EXPECT_TRUE(pieces(2).contains("s"));
  EXPECT_FALSE(pieces(1).contains("s"));
  EXPECT_TRUE(pieces(1).contains("\u2581often"));

  // Text without spaces: every line is a word of its own, and none is left out.
  lines = {"abcab", "bcdbc", "cdecd"};
  for (const char* letter : {"a", "b", "c", "d", "e"}) EXPECT_TRUE(pieces(1).contains(letter));
}

TEST(SubwordTraining, TextThatLooksLikeThePiecesIsHarmless) {
  for (const SubwordKind kind : {SubwordKind::bpe, SubwordKind::unigram}) {
    std::vector<std::string> lines = sample_lines("test.en");
    for (int i = 0; i < 100; ++i) {
      lines.push_back("</s></s><s> <unk><pad> <0x41><0x0A> \u2581\u2581 \u2585 x\ty " +
                      std::string(1, '\0'));
    }
    const Subwords subwords(
        train_subwords({.kind = kind, .vocabulary_size = 800, .character_coverage = 1.0}, lines),
        "x.model");
    std::map<std::string, int> spelled;
    for (std::int32_t id = 0; id < 800; ++id) ++spelled[subwords.vocabulary().piece(id)];
    EXPECT_EQ(spelled.size(), 800u) << "a piece is there twice";
    const std::string text = "</s><s> <unk><pad> <0x41>";
    EXPECT_EQ(subwords.decode(encode(subwords, text)), text);
  }
}

TEST(LineSample, IsUniformAndDeterministic) {
  std::vector<int> chosen(20, 0);
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    LineSample sample(5, seed), again(5, seed);
    for (int i = 0; i < 20; ++i) {
      sample.offer(std::to_string(i));
      again.offer(std::to_string(i));
    }
    ASSERT_EQ(sample.lines(), again.lines());
    ASSERT_EQ(sample.lines().size(), 5u);
    for (const std::string& line : sample.lines())
      ++chosen[static_cast<std::size_t>(std::stoi(line))];
  }
  for (const int times : chosen) EXPECT_NEAR(times, 1000, 5 * std::sqrt(750.0));
  LineSample few(5, 1);
  few.offer("a");
  EXPECT_EQ(few.take(), std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace octavo
