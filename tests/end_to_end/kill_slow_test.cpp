// kill -9 at any moment, then the same command again: the run ends with the bytes and the records
// of the run that nobody killed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/philox.h"
#include "tests/comm/ranks.h"
#include "tests/end_to_end/experiment_folder.h"
#include "trainer/run_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using testkit::ProgramResult;
using testkit::Ranks;

constexpr int kUpdates = 48;
// Two ranks go on for a second after mpirun was killed, and half of one after the script was.
constexpr int kManyUpdates = 140;

class Killed : public testkit::ExperimentTest {
 protected:
  /// Beyond the end of an epoch, with running averages and validation.
  static std::vector<std::string> settings(int updates = kUpdates) {
    return {fmt::format("trainer.max_updates={}", updates), "trainer.average_decay=0.9",
            "trainer.validation.every_updates=5",           "trainer.validation.bleu_sentences=4",
            "trainer.checkpoints.every_updates=1",          "trainer.checkpoints.keep_last=2"};
  }

  static fs::path run_folder(const std::string& run) { return folder_->path(run); }

  /// The update of the newest checkpoint; 0 without one.
  static std::int64_t newest(const std::string& run) {
    const auto all = list_checkpoints(run_folder(run));
    return all.empty() ? 0 : all.back().update;
  }

  static std::string saved(std::int64_t update) { return fmt::format("/step_{:08}\n", update); }

  /// Whether a checkpoint is being written, or was when its writer died.
  static bool has_unfinished_checkpoint(const std::string& run) {
    std::error_code absent;
    for (fs::directory_iterator i(checkpoints_folder(run_folder(run)), absent), end;
         !absent && i != end; i.increment(absent)) {
      if (i->path().string().ends_with(".octavo.tmp")) return true;
    }
    return false;
  }

  static void expect_same_run(const std::string& straight, const std::string& killed) {
    const std::int64_t end = newest(straight);
    EXPECT_TRUE(folder_->weights(straight, end) == folder_->weights(killed, end));
    EXPECT_EQ(folder_->metrics(straight), folder_->metrics(killed));
    EXPECT_EQ(read_best(run_folder(straight))->update, read_best(run_folder(killed))->update);
    // All that killed writers left was cleared away.
    for (const auto& entry : fs::recursive_directory_iterator(run_folder(killed)))
      EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos) << entry.path();
  }
};

// Every second kill waits for a checkpoint to be under way; the others fall anywhere: at the start,
// in an update, in validation.
TEST_F(Killed, AtRandomMomentsEndsLikeTheRunThatWasNot) {
  const ProgramResult straight = folder_->train("straight", settings());
  ASSERT_EQ(straight.exit_code, 0) << straight.err;

  RandomStream random(7);
  int unfinished = 0;
  for (int kill_number = 0; kill_number < 12; ++kill_number) {
    Ranks process(folder_->train_arguments("killed", settings()));
    const auto updates = static_cast<std::int64_t>(random.below(4));
    if (updates > 0) {
      ASSERT_TRUE(process.says(saved(newest("killed") + updates))) << process.output();
    }
    const bool writing = kill_number % 2 == 0;
    for (int i = 0; writing && i < 20'000 && !has_unfinished_checkpoint("killed"); ++i)
      std::this_thread::sleep_for(microseconds(100));
    const std::uint64_t longest = writing ? 3'000 : updates > 0 ? 60'000 : 250'000;
    std::this_thread::sleep_for(microseconds(random.below(longest)));
    kill(process.process(), SIGKILL);
    ASSERT_EQ(128 + SIGKILL, process.exit_code()) << process.output();
    unfinished += has_unfinished_checkpoint("killed") ? 1 : 0;
  }
  EXPECT_GE(unfinished, 1) << "no kill met a checkpoint";
  EXPECT_GT(newest("killed"), 0);
  EXPECT_LT(newest("killed"), kUpdates);

  const ProgramResult last = folder_->train("killed", settings());
  ASSERT_EQ(last.exit_code, 0) << last.err;
  expect_same_run("straight", "killed");
}

TEST_F(Killed, RankMpirunOrScriptEndsLikeTheRunThatWasNot) {
  const ProgramResult straight = folder_->train_ranks("straight_ranks", settings(kManyUpdates), 2);
  ASSERT_EQ(straight.exit_code, 0) << straight.err;

  for (const std::string victim : {"rank 1", "mpirun", "rank 0", "script"}) {
    Ranks process(folder_->train_ranks_arguments("killed_ranks", settings(kManyUpdates), 2));
    ASSERT_TRUE(process.says(saved(newest("killed_ranks") + 3))) << process.output();
    const pid_t mpirun = testkit::children_of(process.process(), "mpirun").at(0);
    const std::vector<pid_t> ranks = testkit::children_of(mpirun, "octavo");
    ASSERT_EQ(ranks.size(), 2U);
    const bool one_rank = victim.starts_with("rank");
    const pid_t target = one_rank             ? ranks.at(victim == "rank 1" ? 1 : 0)
                         : victim == "mpirun" ? mpirun
                                              : process.process();
    kill(target, SIGKILL);
    EXPECT_EQ(one_rank ? 3 : 128 + SIGKILL, process.exit_code(10.0)) << process.output();
    if (victim != "script") {
      EXPECT_EQ(1, testkit::occurrences(process.output(), "error: ")) << process.output();
    }
    // Nothing of it writes into the run's folder any more, so the next one may start at once.
    for (const pid_t rank : ranks) EXPECT_FALSE(testkit::is_running(rank)) << victim;
    EXPECT_LT(newest("killed_ranks"), kManyUpdates);
  }
  const ProgramResult last = folder_->train_ranks("killed_ranks", settings(kManyUpdates), 2);
  ASSERT_EQ(last.exit_code, 0) << last.err;
  expect_same_run("straight_ranks", "killed_ranks");
}

class Asked : public Killed, public ::testing::WithParamInterface<std::pair<int, const char*>> {};

// SIGINT or SIGTERM to mpirun or to one rank: all agree on the update, save and leave with code 0.
TEST_P(Asked, ToStopSavesAndGoesOnLikeTheRunThatWasNot) {
  const auto [signal, whom] = GetParam();
  static const ProgramResult straight = folder_->train_ranks("straight_asked", settings(), 2);
  ASSERT_EQ(straight.exit_code, 0) << straight.err;
  const std::string run = fmt::format("asked_{}_{}", signal, whom);
  {
    Ranks process(folder_->train_ranks_arguments(run, settings(), 2));
    // The validation that is due after update 5 may thus be still to come.
    ASSERT_TRUE(process.says(saved(4))) << process.output();
    const pid_t mpirun = testkit::children_of(process.process(), "mpirun").at(0);
    const bool rank = std::string(whom) == "rank";
    kill(rank ? testkit::children_of(mpirun, "octavo").at(1) : mpirun, signal);
    EXPECT_EQ(0, process.exit_code(10.0)) << process.output();
    EXPECT_EQ(1, testkit::occurrences(process.output(), "stopped as asked")) << process.output();
    EXPECT_LT(newest(run), kUpdates);
  }
  const ProgramResult last = folder_->train_ranks(run, settings(), 2);
  ASSERT_EQ(last.exit_code, 0) << last.err;
  expect_same_run("straight_asked", run);
}
INSTANTIATE_TEST_SUITE_P(Signals, Asked,
                         ::testing::Values(std::pair(SIGTERM, "mpirun"),
                                           std::pair(SIGINT, "mpirun"), std::pair(SIGTERM, "rank"),
                                           std::pair(SIGINT, "rank")),
                         [](const auto& test) {
                           return fmt::format(
                               "{}To{}", test.param.first == SIGINT ? "Interrupt" : "Terminate",
                               test.param.second);
                         });

}  // namespace
}  // namespace octavo
