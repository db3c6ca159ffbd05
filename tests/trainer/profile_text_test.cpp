#include "trainer/profile_text.h"

#include <gtest/gtest.h>

#include <chrono>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace octavo {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

void run(Profile& profile, const OpCost& cost, int milliseconds) {
  profile.begin(cost);
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  profile.end();
}

TEST(ProfileText, HasALineForEachOpAndTheWaits) {
  Profile profile;
  run(profile, {.name = "adam", .flops = 10, .bytes = 20}, 0);
  run(profile, {.name = "linear_forward", .flops = 40'000'000, .bytes = 1'000}, 20);
  run(profile, {.name = "linear_forward", .flops = 40'000'000, .bytes = 1'000}, 20);
  const UpdateTimes times{
      .updates = 2, .seconds = 10, .data_seconds = 1, .collective_seconds = 0.5};
  const std::vector<std::string> lines =
      lines_of(profile_text(profile, times, {.flops = 4e9, .bytes = 2e9}));
  ASSERT_EQ(8U, lines.size());
  EXPECT_EQ(
      "rank 0: 2 updates in 10.000 seconds; the machine's limits: 4 GFLOP/s of a large product, "
      "2.0 GB/s of a copy",
      lines[0]);
  EXPECT_EQ("op calls seconds of all GFLOP/s GB/s of limit", [&] {
    std::string joined;
    for (const std::string& word : words_of(lines[1])) joined += (joined.empty() ? "" : " ") + word;
    return joined;
  }());
  // Its FLOPs alone would take 20 ms, of at least 40.
  const std::vector<std::string> linear = words_of(lines[2]);
  EXPECT_EQ("linear_forward", linear.at(0));
  EXPECT_EQ("2", linear.at(1));
  EXPECT_LE(std::stod(linear.at(4)), 2.0);
  EXPECT_GE(std::stod(linear.at(4)), 0.2);
  EXPECT_LE(std::stod(linear.at(6)), 50.0);
  EXPECT_GE(std::stod(linear.at(6)), 5.0);
  const std::vector<std::string> all = words_of(lines[4]);
  EXPECT_EQ("3", all.at(2));
  EXPECT_EQ((std::vector<std::string>{"wait", "for", "data", "1.000", "10.0%"}),
            words_of(lines[5]));
  EXPECT_EQ((std::vector<std::string>{"wait", "for", "ranks", "0.500", "5.0%"}),
            words_of(lines[6]));
  EXPECT_EQ("all else", lines[7].substr(0, 8));
  EXPECT_GE(std::stod(words_of(lines[7]).back()), 80.0);
  EXPECT_LE(std::stod(words_of(lines[7]).back()), 84.6);
}

}  // namespace
}  // namespace octavo
