#include "translate/score_texts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <thread>

#include "core/error.h"
#include "core/lines.h"
#include "data/subword_training.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testkit::message_of;
using testkit::TempFolder;

const Subwords& subwords() {
  static const Subwords model(
      train_subwords({.kind = SubwordKind::bpe, .vocabulary_size = 600, .character_coverage = 1},
                     read_lines(std::filesystem::path(OCTAVO_SOURCE_DIR) /
                                "tests/samples/libreoffice-help/dev.en")),
      "sample");
  return model;
}

/// The score is -(bytes of the source . bytes of the target), to see who met whom.
std::vector<double> lengths(std::span<const IdPair> pairs) {
  std::vector<double> scores;
  for (const IdPair& p : pairs) {
    EXPECT_EQ(p.source.back(), subwords().vocabulary().eos());
    EXPECT_EQ(p.target.back(), subwords().vocabulary().eos());
    scores.push_back(-static_cast<double>(subwords().decode(p.source).size()) -
                     static_cast<double>(subwords().decode(p.target).size()) / 100);
  }
  return scores;
}

std::string scores_of(const std::string& source, const std::string& target,
                      std::int64_t max_length = 100) {
  std::string out;
  score_texts(
      source, target,
      {.source = subwords(), .target = subwords(), .max_length = max_length, .score = lengths},
      [&](std::string_view piece) { out += piece; });
  return out;
}

TEST(ScoreTexts, WritesANumberForEachPair) {
  const TempFolder folder;
  const std::string source = folder.write("s", "abc\n\nx\xFF\nlast");
  const std::string target = folder.write("t", "ab\nabcd\n\nz\n");
  EXPECT_EQ(scores_of(source, target), "-3.020000\n-0.040000\n-4.000000\n-4.010000\n");
  EXPECT_EQ(scores_of(folder.write("e", ""), folder.write("f", "")), "");
}

TEST(ScoreTexts, RefusesWhatIsNoProbability) {
  const TempFolder folder;
  const std::string text = folder.write("s", "a\nb\n");
  const auto score = [](std::span<const IdPair> pairs) {
    std::vector<double> scores(pairs.size(), -1.0);
    scores.back() = std::nan("");
    return scores;
  };
  EXPECT_THAT(message_of<UserError>([&] {
                score_texts(
                    text, text,
                    {.source = subwords(), .target = subwords(), .max_length = 9, .score = score},
                    [](std::string_view) {});
              }),
              HasSubstr("pair 2 gets no probability but nan"));
}

TEST(ScoreTexts, GoesOnOverWindows) {
  const TempFolder folder;
  std::string text, expected;
  for (int i = 0; i < 5000; ++i) {
    text += std::string(static_cast<std::size_t>(i % 10), 'a') + "\n";
    expected += fmt::format("{:.6f}\n", -static_cast<double>(i % 10) - (i % 10) / 100.0);
  }
  const std::string path = folder.write("s", text);
  EXPECT_TRUE(scores_of(path, path) == expected);
}

TEST(ScoreTexts, RefusesUnequalTextsBeforeAnythingIsScored) {
  const TempFolder folder;
  const std::string three = folder.write("three", "a\nb\nc\n"), two = folder.write("two", "a\nb\n");
  std::string out;
  const auto message = [&](const std::string& s, const std::string& t) {
    return message_of<UserError>([&] { out += scores_of(s, t); });
  };
  EXPECT_THAT(message(three, two),
              ::testing::AllOf(HasSubstr("three has 3 lines"), HasSubstr("two has 2")));
  EXPECT_THAT(message(two, three),
              ::testing::AllOf(HasSubstr("two has 2 lines"), HasSubstr("three has 3")));
  EXPECT_EQ(out, "");
}

TEST(ScoreTexts, NoticesUnequalTextsThatCanBeReadOnceOnly) {
  const TempFolder folder;
  const std::string fifo = folder / "fifo", two = folder.write("two", "a\nb\n");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(fifo) << "a\nb\nc\nd\n"; });
  const std::string message = message_of<UserError>([&] { scores_of(fifo, two); });
  writer.join();
  EXPECT_THAT(message, ::testing::AllOf(HasSubstr("fifo has 4 lines"), HasSubstr("two has 2")));
}

TEST(ScoreTexts, RefusesLongLinesByNumber) {
  const TempFolder folder;
  const std::string source = folder.write("s", "a\n" + std::string(300, 'q') + "\n");
  const std::string target = folder.write("t", "a\nb\n");
  EXPECT_THAT(message_of<UserError>([&] { scores_of(source, target, 20); }),
              ::testing::AllOf(HasSubstr("s:2: the line has "), HasSubstr("at most 20")));
  EXPECT_THAT(message_of<UserError>([&] { scores_of(target, source, 20); }), HasSubstr("s:2: "));
  EXPECT_THAT(message_of<UserError>([&] { scores_of(folder / "none", source); }),
              HasSubstr("none"));
}

}  // namespace
}  // namespace octavo
