// What is promised of runs that ought to be the same run.
#include <gtest/gtest.h>

#include "tests/end_to_end/experiment_folder.h"

namespace octavo {
namespace {

using testkit::ProgramResult;

class Repeat : public testkit::ExperimentTest {};

TEST_F(Repeat, TheSameRunTwiceGivesTheSameBytes) {
  for (const char* precision : {"float32", "bf16"}) {
    const std::vector<std::string> settings{std::string("trainer.precision=") + precision,
                                            "trainer.max_updates=12"};
    const std::string a = std::string("a_") + precision, b = std::string("b_") + precision;
    const ProgramResult first = folder_->train(a, settings, 2);
    ASSERT_EQ(first.exit_code, 0) << first.err;
    ASSERT_EQ(folder_->train(b, settings, 2).exit_code, 0);
    EXPECT_TRUE(folder_->weights(a, 12) == folder_->weights(b, 12)) << precision;
  }
}

// A run that is interrupted and goes on equals the run that was not, bit for bit; over the end of
// an epoch, with running averages and validation between.
TEST_F(Repeat, ARunThatGoesOnEqualsTheRunThatWasNotInterrupted) {
  const std::vector<std::string> common{
      "trainer.tokens_per_update=20000", "trainer.average_decay=0.9",
      "trainer.validation.every_updates=3", "trainer.validation.bleu_sentences=10",
      "trainer.checkpoints.every_updates=2"};
  std::vector<std::string> half = common, whole = common;
  half.emplace_back("trainer.max_updates=5");
  whole.emplace_back("trainer.max_updates=9");
  const ProgramResult straight = folder_->train("straight", whole);
  ASSERT_EQ(straight.exit_code, 0) << straight.err;
  ASSERT_EQ(folder_->train("halves", half).exit_code, 0);
  const ProgramResult second = folder_->train("halves", whole);
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_TRUE(folder_->weights("straight", 9) == folder_->weights("halves", 9));
  EXPECT_EQ(folder_->records("halves").size(), 9U);
}

TEST_F(Repeat, AFinishedRunStartedAgainDoesNothing) {
  const std::vector<std::string> settings{"trainer.max_updates=2",
                                          "trainer.validation.every_updates=2",
                                          "trainer.validation.bleu_sentences=4"};
  const ProgramResult first = folder_->train("finished", settings);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.err.find("[trainer] saved"), std::string::npos) << first.err;
  const ProgramResult again = folder_->train("finished", settings);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.err.find("[trainer] saved"), std::string::npos) << again.err;
  EXPECT_EQ(again.err.find("[validation]"), std::string::npos) << again.err;
  EXPECT_NE(again.err.find("raise trainer.max_updates"), std::string::npos) << again.err;
}

TEST_F(Repeat, OtherSettingsAreRefusedByName) {
  ASSERT_EQ(folder_->train("fixed", {"trainer.max_updates=1"}).exit_code, 0);
  const ProgramResult other =
      folder_->train("fixed", {"trainer.max_updates=2", "trainer.label_smoothing=0.2"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("trainer.label_smoothing was 0.1, is 0.2"), std::string::npos)
      << other.err;
}

}  // namespace
}  // namespace octavo
