#include "translate/translator.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "core/error.h"
#include "core/lines.h"
#include "data/subword_training.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"
#include "translate/stream.h"

namespace octavo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testkit::message_of;
using testkit::TempFolder;

const Subwords& subwords() {
  static const Subwords model(
      train_subwords(
          {.kind = SubwordKind::bpe, .vocabulary_size = 600, .character_coverage = 0.999},
          read_lines(std::filesystem::path(OCTAVO_SOURCE_DIR) /
                     "tests/samples/libreoffice-help/dev.en")),
      "sample");
  return model;
}

/// Translates every sentence into itself, and tells of its length in the score.
std::vector<std::vector<Translation>> echo(std::span<const std::vector<std::int32_t>> sources) {
  std::vector<std::vector<Translation>> results;
  for (const std::vector<std::int32_t>& source : sources) {
    EXPECT_EQ(source.back(), subwords().vocabulary().eos());
    Translation same;
    same.ids.assign(source.begin(), source.end() - 1);
    same.score = -static_cast<double>(source.size());
    Translation second = same;
    second.ids.pop_back();
    second.score -= 1;
    results.push_back({same, second});
  }
  return results;
}

Translator echoing(std::int64_t max_source = 1024, LongLines long_lines = LongLines::split) {
  return Translator(subwords(), subwords(), {.long_lines = long_lines, .max_source = max_source},
                    echo);
}

std::vector<std::string> best_of(Translator& translator, const std::vector<std::string>& lines) {
  std::vector<std::string> texts;
  for (const auto& translations : translator.translate(lines, 1)) {
    texts.push_back(translations.at(0).text);
  }
  return texts;
}

TEST(Translator, GivesALineForALineWhateverItHolds) {
  const std::vector<std::string> lines{"Open the file.",
                                       "",
                                       " ",
                                       "\r\v\f",
                                       "a\rb",
                                       "a\u2028b\u0085c",
                                       std::string("a\0b", 3),
                                       "</s>",
                                       "",
                                       "<pad> ||| 1",
                                       "\u00E4\u00F6",
                                       "  a  ",
                                       "\uFFFD",
                                       "\t"};
  Translator translator = echoing();
  std::vector<std::string> expected = lines;
  for (const std::size_t blank : {2, 3, 13}) expected[blank].clear();  // none was ever trained on
  EXPECT_EQ(best_of(translator, lines), expected);
  EXPECT_EQ(translator.counts().lines, static_cast<std::int64_t>(lines.size()));
  EXPECT_EQ(translator.counts().split, 0);
  EXPECT_EQ(translator.counts().ill_formed, 0);
}

TEST(Translator, AnEmptyLineIsNotAsked) {
  std::size_t asked = 99;
  Translator translator(subwords(), subwords(), {.long_lines = LongLines::split, .max_source = 99},
                        [&](std::span<const std::vector<std::int32_t>> sources) {
                          asked = sources.size();
                          return std::vector<std::vector<Translation>>{};
                        });
  EXPECT_EQ(best_of(translator, {"", " \t"}), std::vector<std::string>(2));
  EXPECT_EQ(asked, 0u);
  EXPECT_TRUE(translator.translate({}, 1).empty());
}

TEST(Translator, ReplacesIllFormedBytes) {
  Translator translator = echoing();
  EXPECT_THAT(best_of(translator, {"a\xFFz", "ok", "\xE2\x82"}),
              ElementsAre("a\uFFFDz", "ok", "\uFFFD\uFFFD"));
  EXPECT_EQ(translator.counts().ill_formed, 2);
}

TEST(Translator, SplitsLongLinesAndJoinsThem) {
  Translator translator = echoing(12);
  const std::string text =
      "Open the file. Close the window, then save it; and print the page twice.";
  EXPECT_THAT(best_of(translator, {"a", text, "b"}), ElementsAre("a", text, "b"));
  EXPECT_EQ(translator.counts().split, 1);
  // No word is whole: cut between characters, joined without spaces.
  const std::string word(5000, 'x');
  EXPECT_THAT(best_of(translator, {word}), ElementsAre(word));
  const std::string huge = std::string(50'000, 'y') + " " + std::string(50'000, 'z');
  EXPECT_THAT(best_of(translator, {huge}), ElementsAre(huge));
}

TEST(Translator, NoPartIsLongerThanTheModelTakes) {
  std::size_t longest = 0;
  Translator translator(subwords(), subwords(), {.long_lines = LongLines::split, .max_source = 6},
                        [&](std::span<const std::vector<std::int32_t>> sources) {
                          for (const auto& s : sources) longest = std::max(longest, s.size());
                          return echo(sources);
                        });
  const std::string strange = "\U0001F600\U0001F601\u4E2D\u6587 \U0001F602";
  EXPECT_THAT(best_of(translator, {strange}), ElementsAre(strange));
  EXPECT_EQ(longest, 6u);
}

TEST(Translator, RefusesLongLinesByNumber) {
  Translator translator = echoing(10, LongLines::refuse);
  const std::vector<std::string> lines{"short", std::string(200, 'x')};
  EXPECT_THAT(message_of<UserError>([&] { translator.translate(lines, 41); }),
              ::testing::AllOf(HasSubstr("line 42: it has "), HasSubstr("at most 10")));
  EXPECT_THAT(message_of<UserError>([&] { echoing(5); }), HasSubstr("--long-lines refuse"));
}

TEST(Translator, JoinsTheRanksOfParts) {
  Translator translator = echoing(12);
  const std::vector<std::string> lines{"Open the file. Close the window. Print the page."};
  const auto found = translator.translate(lines, 1)[0];
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].text, lines[0]);
  EXPECT_LT(found[1].text.size(), lines[0].size());
  EXPECT_LT(found[1].score, found[0].score);
}

TEST(TranslateStream, KeepsTheOrderOverWindows) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += std::string(static_cast<std::size_t>(i * 37 % 50), 'a') + "\n";
  LineReader input(folder.write("in", text + "last"));
  Translator translator = echoing();
  std::string out;
  int windows = 0;
  translate_stream(input, translator, {.window_lines = 7}, [&](std::string_view piece) {
    out += piece;
    ++windows;
  });
  EXPECT_EQ(out, text + "last\n");
  EXPECT_EQ(windows, 15);
}

TEST(TranslateStream, LimitsAWindowInBytes) {
  const TempFolder folder;
  LineReader input(folder.write("in", "aaaa\nbbbb\ncccc\n"));
  Translator translator = echoing();
  int windows = 0;
  translate_stream(input, translator, {.window_bytes = 5}, [&](std::string_view) { ++windows; });
  EXPECT_EQ(windows, 2);
}

TEST(TranslateStream, AnEmptyFileGivesNothing) {
  const TempFolder folder;
  LineReader input(folder.write("in", ""));
  Translator translator = echoing();
  translate_stream(input, translator, {}, [](std::string_view) { FAIL(); });
}

TEST(TranslateStream, WritesNBestLists) {
  const TempFolder folder;
  LineReader input(folder.write("in", "ab\n\n"));
  Translator translator = echoing();
  std::string out;
  translate_stream(input, translator, {.nbest_lists = true}, [&](std::string_view s) { out += s; });
  const auto lines = read_lines(folder.write("out", out));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], ::testing::MatchesRegex("0 \\|\\|\\| ab \\|\\|\\| -[0-9.]+"));
  EXPECT_THAT(lines[1], ::testing::MatchesRegex("0 \\|\\|\\| a? \\|\\|\\| -[0-9.]+"));
  EXPECT_EQ(lines[2], "1 |||  ||| 0.000000");
}

TEST(TranslateStream, AnswersALineBeforeTheNextComes) {
  const TempFolder folder;
  const std::string path = folder / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int writer = ::open(path.c_str(), O_RDWR);
  ASSERT_GE(writer, 0);
  LineReader input(path);
  Translator translator = echoing();
  ASSERT_EQ(::write(writer, "one\n", 4), 4);
  std::vector<std::string> answers;
  translate_stream(input, translator, {}, [&](std::string_view piece) {
    answers.emplace_back(piece);
    if (answers.size() == 1) {
      ASSERT_EQ(::write(writer, "two\nthree\n", 10), 10);
    } else {
      ::close(writer);
    }
  });
  EXPECT_THAT(answers, ElementsAre("one\n", "two\nthree\n"));
}

}  // namespace
}  // namespace octavo
