// launch/train.sh with test_comm_mpi in the place of octavo: the "configuration" is a scenario.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/comm/ranks.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using testing::Not;
using testkit::Ranks;

std::vector<std::string> train(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), OCTAVO_SOURCE_DIR "/launch/train.sh");
  return arguments;
}

TEST(TrainScript, PassesArgumentsAndThreads) {
  Ranks run(
      train({"hide_sums", "--ranks", "2", "--threads", "3", "--set", "a.b=c d", "--set", "e='*'"}));
  EXPECT_EQ(0, run.exit_code()) << run.output();
  EXPECT_EQ(2, testkit::occurrences(run.output(),
                                    "called with 'train' 'hide_sums' '--progress' 'plain' "
                                    "'--threads' '3' '--set' 'a.b=c d' '--set' 'e='*'' "
                                    "OMP_NUM_THREADS=3"))
      << run.output();
}

TEST(TrainScript, IsSilentItself) {
  Ranks run(train({"everywhere", "--ranks", "1"}));
  EXPECT_EQ(2, run.exit_code());
  EXPECT_THAT(run.output(), testing::EndsWith("error: corpus.de:17: not UTF-8\n"));
  EXPECT_EQ(3, testkit::occurrences(run.output(), "\n")) << run.output();
}

TEST(TrainScript, GivesEachRankAtLeastOneThread) {
  Ranks run(train({"hide_sums", "--ranks", "64", "--progress", "live", "--threads", "0"}));
  EXPECT_EQ(2, run.exit_code());
  EXPECT_THAT(run.output(), HasSubstr("--threads is '0'; it must be a number from 1 to 9999"));
  Ranks many(train({"collectives", "--ranks", "9", "--progress", "live"}));
  EXPECT_NE(0, many.exit_code());  // that scenario wants to be told the number of ranks
  EXPECT_THAT(many.output(), HasSubstr("'--progress' 'live' '--threads' '1' OMP_NUM_THREADS=1"));
}

TEST(TrainScript, ExplainsMistakes) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{"--ranks", "2"}, "launch/train.sh CONFIG"},
      {{"a", "b"}, "two configurations: 'a' and 'b'"},
      {{"a", "--ranks"}, "--ranks needs a value"},
      {{"a", "--ranks", "two"}, "--ranks is 'two'"},
      {{"a", "--ranks", "9999"}, "would only wait for each other"},
      {{"a", "--rank", "2"}, "no option '--rank'"},
      {{"a", "--progress", "loud"}, "it must be live or plain"}};
  for (const auto& [arguments, message] : mistakes) {
    Ranks run(train(arguments));
    EXPECT_EQ(2, run.exit_code());
    EXPECT_THAT(run.output(), HasSubstr(message));
  }
}

TEST(TrainScript, WorksFromAnyFolderAndShowsItsHelp) {
  const auto folder = std::filesystem::current_path();
  std::filesystem::current_path("/");
  Ranks run(train({"--help"}));
  EXPECT_EQ(0, run.exit_code());
  EXPECT_THAT(run.output(), HasSubstr("--threads N"));
  Ranks real(train({"hide_sums"}));
  EXPECT_EQ(0, real.exit_code()) << real.output();
  std::filesystem::current_path(folder);
}

class TrainScriptStop : public testing::TestWithParam<int> {};

TEST_P(TrainScriptStop, HandsSignalsOn) {
  Ranks run(train({"stop_politely", "--ranks", "3"}));
  ASSERT_TRUE(run.says("rank 0 is") && run.says("rank 1 is") && run.says("rank 2 is"));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  kill(run.process(), GetParam());
  EXPECT_EQ(0, run.exit_code()) << run.output();
  EXPECT_EQ(3, testkit::occurrences(run.output(), "stops after update")) << run.output();
}
INSTANTIATE_TEST_SUITE_P(Signals, TrainScriptStop, testing::Values(SIGTERM, SIGINT, SIGHUP));

// Ranks that are not ready have nothing to save, and may not have heard of it.
TEST(TrainScript, StopsBeforeItsRanksAreReady) {
  Ranks waits(train({"start_slowly", "--ranks", "2"}));
  ASSERT_TRUE(waits.says("starts slowly"));
  kill(waits.process(), SIGTERM);
  EXPECT_EQ(0, waits.exit_code()) << waits.output();
  EXPECT_THAT(waits.output(), HasSubstr("[train] stopped as asked, before the first update"));
  for (const int milliseconds : {30, 100, 200, 400}) {
    Ranks run(train({"start_slowly", "--ranks", "2"}));
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    kill(run.process(), SIGTERM);
    // 143: the shell had not come to its traps, nor to mpirun.
    EXPECT_THAT(run.exit_code(), testing::AnyOf(0, 128 + SIGTERM)) << run.output();
  }
}

// Ranks that were ended as soon as they started may never have been seen. The stand-in for mpirun
// waits on without children, as mpirun does then.
TEST(TrainScript, StopsWhenItsRanksCameAndWentUnseen) {
  const testkit::TempFolder folder;
  const auto mpirun = folder / "mpirun";
  std::ofstream(mpirun) << "#!/bin/bash\ntrap '' TERM\nexec {never}<> <(:)\necho started\n"
                           "read -rt 60 -u $never\n";
  std::filesystem::permissions(mpirun, std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
  Ranks run(train({"start_slowly", "--ranks", "2"}));
  setenv("PATH", path.c_str(), 1);
  ASSERT_TRUE(run.says("started"));
  kill(run.process(), SIGTERM);
  EXPECT_EQ(0, run.exit_code(20.0)) << run.output();
  EXPECT_THAT(run.output(), HasSubstr("[train] stopped as asked, before the first update"));
}

// A signal to the script's process group reaches its watcher, too.
TEST(TrainScript, WatchesOnWhenItsProcessGroupIsSignalled) {
  Ranks run(train({"die_when_asked", "--ranks", "2"}));
  ASSERT_TRUE(run.says("rank 0 is") && run.says("rank 1 is"));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  kill(-getpgid(run.process()), SIGTERM);
  EXPECT_EQ(3, run.exit_code()) << run.output();
}

TEST(TrainScript, TakesWhatIsNoNumberOfHostsForOne) {
  setenv("SLURM_JOB_NUM_NODES", "abc", 1);
  Ranks run(train({"hide_sums", "--ranks", "2"}));
  EXPECT_EQ(0, run.exit_code()) << run.output();
  EXPECT_EQ(0, testkit::occurrences(run.output(), "launch/train.sh")) << run.output();
  unsetenv("SLURM_JOB_NUM_NODES");
}

TEST(TrainScript, TellsThatMpiDidNotStart) {
  setenv("OMPI_MCA_pml", "nonesuch", 1);
  Ranks run(train({"start_slowly", "--ranks", "2"}));
  unsetenv("OMPI_MCA_pml");
  EXPECT_EQ(3, run.exit_code()) << run.output();
  EXPECT_EQ(1, testkit::occurrences(run.output(), "error: ")) << run.output();
  EXPECT_THAT(run.output(), HasSubstr("the ranks ended while MPI started"));
  EXPECT_THAT(run.output(), HasSubstr("It was told: OMPI_MCA_pml"));
}

TEST(TrainScript, LeavesWithZeroWhenMpirunIsSignalled) {
  Ranks run(train({"stop_politely", "--ranks", "3"}));
  ASSERT_TRUE(run.says("rank 0 is") && run.says("rank 1 is") && run.says("rank 2 is"));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  kill(testkit::parent_of(run.process(0)), SIGTERM);
  EXPECT_EQ(0, run.exit_code()) << run.output();
}

TEST(TrainScript, StopsItsRanksIfItIsKilled) {
  Ranks run(train({"stop_politely", "--ranks", "2"}));
  ASSERT_TRUE(run.says("rank 0 is") && run.says("rank 1 is"));
  const std::string folder = testkit::variable_of(run.process(0), "OMPI_MCA_orte_tmpdir_base");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  kill(run.process(), SIGKILL);
  EXPECT_EQ(128 + SIGKILL, run.exit_code()) << "ends when its ranks have closed the output";
  EXPECT_EQ(2, testkit::occurrences(run.output(), "stops after update")) << run.output();
  for (int i = 0; i < 400 && std::filesystem::exists(folder); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(std::filesystem::exists(folder)) << folder;
}

TEST(TrainScript, OutlivesTheRanksOfAnMpirunThatIsKilled) {
  Ranks run(train({"stop_politely", "--ranks", "2"}));
  ASSERT_TRUE(run.says("rank 0 is") && run.says("rank 1 is"));
  kill(testkit::parent_of(run.process(0)), SIGKILL);
  EXPECT_EQ(128 + SIGKILL, run.exit_code(10.0)) << run.output();
  EXPECT_THAT(run.output(), HasSubstr("error: launch/train.sh: signal 9 ended mpirun"));
  EXPECT_FALSE(testkit::is_running(run.process(0)) || testkit::is_running(run.process(1)));
}

TEST(TrainScript, EndsAtOnceTheSecondTime) {
  Ranks run(train({"never_stop", "--ranks", "2"}));
  ASSERT_TRUE(run.says("rank 0 is") && run.says("rank 1 is"));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  kill(run.process(), SIGINT);
  EXPECT_EQ(-1, run.exit_code(1.5)) << "the first is only a request";
  kill(run.process(), SIGINT);
  EXPECT_EQ(128 + SIGINT, run.exit_code());
}

TEST(TrainScript, TellsWhatKilledARank) {
  Ranks run(train({"kill", "--ranks", "2"}));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(3, run.exit_code());
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  EXPECT_LT(taken.count(), 10.0);
  EXPECT_EQ(1, testkit::occurrences(run.output(), "error: ")) << run.output();
  EXPECT_THAT(run.output(), HasSubstr("rank 0: its process ended without a word"));
}

TEST(TrainScript, LeavesNoFilesBehind) {
  Ranks run(train({"kill", "--ranks", "2"}));
  ASSERT_TRUE(run.says("rank 0 is"));
  const std::string folder = testkit::variable_of(run.process(0), "OMPI_MCA_orte_tmpdir_base");
  EXPECT_TRUE(std::filesystem::exists(folder)) << folder;
  EXPECT_EQ(3, run.exit_code());
  EXPECT_FALSE(std::filesystem::exists(folder)) << folder;
}

}  // namespace
}  // namespace octavo
