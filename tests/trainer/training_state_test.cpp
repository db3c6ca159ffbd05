#include "trainer/training_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "core/error.h"
#include "tests/testkit/child.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using testkit::message_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TrainingState sample() {
  return {.update = 123'456,
          .epoch = 3,
          .epoch_update = 77,
          .skipped_updates = 6,
          .skipped_in_a_row = 2,
          .seed = UINT64_MAX,
          .source_tokens = INT64_MAX,
          .target_tokens = 5,
          .seconds = 0.1 + 0.2,
          .validation_seconds = 1e-300,
          .best_score = -3.0,
          .best_update = 1000,
          .validations_without_gain = 4,
          .validated_as = "bleu of dev",
          .validation_missing = true,
          .automatic_max_tokens = 2048,
          .hashes = {{"data.train[0]", "0123456789abcdef"}, {"a \"b\" ä", ""}}};
}

TEST(TrainingState, ComesBackEqual) {
  EXPECT_EQ(sample(), parse_training_state(to_json(sample()), "x"));
  EXPECT_EQ(TrainingState(), parse_training_state(to_json(TrainingState()), "x"));
}

TEST(TrainingState, KeepsEveryBitOfADouble) {
  std::mt19937_64 random(1);
  TrainingState state;
  for (int i = 0; i < 2000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (std::isnan(value)) continue;
    state.seconds = value;
    state.best_score = -value;
    const TrainingState back = parse_training_state(to_json(state), "x");
    EXPECT_EQ(std::bit_cast<std::uint64_t>(value), std::bit_cast<std::uint64_t>(back.seconds));
    EXPECT_EQ(-value, back.best_score);
  }
  for (const double value :
       {-0.0, 5e-324, std::numeric_limits<double>::max(), kInfinity, -kInfinity}) {
    state.seconds = value;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(value),
              std::bit_cast<std::uint64_t>(parse_training_state(to_json(state), "x").seconds));
  }
  state.seconds = std::nan("");
  EXPECT_TRUE(std::isnan(parse_training_state(to_json(state), "x").seconds));
}

std::string refusal(const std::string& from, const std::string& to) {
  std::string text = to_json(sample());
  const std::size_t at = text.find(from);
  if (at == std::string::npos) return "nothing to replace";
  text.replace(at, from.size(), to);
  return message_of<UserError>([&] { parse_training_state(text, "run/state.json"); });
}

TEST(TrainingState, NamesWhatIsWrong) {
  EXPECT_THAT(refusal("\"epoch\": 3,", ""),
              testing::AllOf(HasSubstr("run/state.json"), HasSubstr("epoch is missing")));
  EXPECT_THAT(refusal("\"epoch\"", "\"epoc\": 1, \"epoch\""), HasSubstr("epoc is not a field"));
  EXPECT_THAT(refusal("\"epoch\": 3", "\"epoch\": -3"), HasSubstr("epoch is not a number"));
  EXPECT_THAT(refusal("\"epoch\": 3", "\"epoch\": 3.0"), HasSubstr("epoch is not a number"));
  EXPECT_THAT(refusal("\"epoch\": 3", "\"epoch\": 9223372036854775808"), HasSubstr("epoch"));
  EXPECT_THAT(refusal("18446744073709551615", "18446744073709551616"), HasSubstr("seed"));
  EXPECT_THAT(refusal("\"seconds\": ", "\"seconds\": \"long\", \"x\": "),
              HasSubstr("seconds is not a number"));
  EXPECT_THAT(refusal("\"\"", "3"), HasSubstr("state.json"));
  EXPECT_THAT(refusal("{", "["), HasSubstr("parse error"));
  EXPECT_THAT(message_of<UserError>([] { parse_training_state("", "f"); }), HasSubstr("f is not"));
  EXPECT_THAT(message_of<UserError>([] { parse_training_state("3", "f"); }),
              HasSubstr("not an object"));
}

}  // namespace
}  // namespace octavo
