// Other ranks or threads train the same: loss and gradient norm of every update agree.
//
// In exact arithmetic they would be equal. In float32 the order of sums differs, by about 1e-8 of
// loss and norm, and that doesn't grow in 50 updates as long as the model is smooth. ReLU is not:
// an input within rounding error of zero may fall on either side of the bend, and the gradient of
// that unit jumps. Seldom, but once it does the norm moves by 1e-5 and more, weights follow, and
// more units jump: after 50 updates up to 1e-3 of the norm (1e-5 of the loss). So float32 is
// compared with GELU, and ReLU in float64, where rounding is too small to meet the bend.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/end_to_end/experiment_folder.h"
#include "tests/end_to_end/same_training.h"

namespace octavo {
namespace {

using testkit::kSameTraining;
using testkit::kSmallBatches;
using testkit::largest_difference;
using testkit::ProgramResult;
using testkit::UpdateRecord;

using Settings = std::vector<std::string>;

class Ranks : public testkit::ExperimentTest {};

TEST_F(Ranks, EightRanksOrTwoThreadsTrainLikeOne) {
  const Settings settings{kSmallBatches, "model.activation=gelu"};
  const ProgramResult one = folder_->train_ranks("one", settings, 1);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const ProgramResult threads = folder_->train_ranks("threads", settings, 1, 2);
  ASSERT_EQ(threads.exit_code, 0) << threads.err;
  const ProgramResult ranks = folder_->train_ranks("ranks", settings, 8);
  ASSERT_EQ(ranks.exit_code, 0) << ranks.err;

  const std::vector<UpdateRecord> expected = folder_->records("one");
  ASSERT_EQ(expected.size(), 50U);
  EXPECT_GT(expected.front().loss - expected.back().loss, 1.0);  // nats
  EXPECT_LE(largest_difference(expected, folder_->records("threads")), kSameTraining);
  const double difference = largest_difference(expected, folder_->records("ranks"));
  EXPECT_LE(difference, kSameTraining);
  EXPECT_GT(difference, 0) << "eight ranks add up in another order: was this one rank?";
}

// Rounding apart, ReLU agrees to the last digits.
TEST_F(Ranks, ReluInFloat64AgreesToo) {
  const Settings settings{kSmallBatches, "trainer.precision=float64", "trainer.max_updates=15"};
  const ProgramResult one = folder_->train_ranks("one_f64", settings, 1);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const ProgramResult ranks = folder_->train_ranks("ranks_f64", settings, 8);
  ASSERT_EQ(ranks.exit_code, 0) << ranks.err;
  EXPECT_LE(largest_difference(folder_->records("one_f64"), folder_->records("ranks_f64")), 1e-12);
}

// That comparison is worth something: without one bucket in the sum it fails, at the first update.
TEST_F(Ranks, ABucketLeftOutOfTheSumIsNoticed) {
  const Settings settings{kSmallBatches, "model.activation=gelu", "trainer.max_updates=3",
                          "comm.bucket_megabytes=0.1"};
  const ProgramResult one = folder_->train_ranks("sound_one", settings, 1);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const ProgramResult two = folder_->train_ranks("sound_two", settings, 2);
  ASSERT_EQ(two.exit_code, 0) << two.err;
  const ProgramResult forgetful =
      folder_->train_ranks("forgetful", settings, 2, 1, OCTAVO_FORGETFUL_PROGRAM);
  ASSERT_EQ(forgetful.exit_code, 0) << forgetful.err;

  const std::vector<UpdateRecord> expected = folder_->records("sound_one");
  EXPECT_LE(largest_difference(expected, folder_->records("sound_two")), kSameTraining);
  std::vector<UpdateRecord> broken = folder_->records("forgetful");
  EXPECT_GT(largest_difference(expected, broken), 1000 * kSameTraining);
  ASSERT_EQ(broken.size(), 3U);
  broken.resize(1);
  EXPECT_GT(largest_difference({expected.front()}, broken), 1000 * kSameTraining);
}

}  // namespace
}  // namespace octavo
