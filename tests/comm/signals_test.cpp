#include "comm/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "comm/last_words.h"
#include "core/error.h"
#include "core/file.h"
#include "tests/comm/ranks.h"

namespace octavo {
namespace {

using testing::ExitedWithCode;

TEST(StopSignals, SetAFlag) {
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) {
    StopSignals signals;
    SingleGroup group;
    signals.arm(group);
    EXPECT_FALSE(signals.requested());
    raise(number);
    EXPECT_TRUE(signals.requested());
    raise(number);  // within a second: the same request again
    EXPECT_TRUE(signals.requested());
  }
}

TEST(StopSignals, IgnoreSigcontOfOthers) {
  StopSignals signals;
  SingleGroup group;
  signals.arm(group);
  raise(SIGCONT);
  EXPECT_FALSE(signals.requested());
}

TEST(StopSignals, PutFormerHandlersBack) {
  static volatile sig_atomic_t seen = 0;
  struct sigaction mine {
  }, former{};
  mine.sa_handler = [](int) { seen = 1; };
  sigaction(SIGUSR1, &mine, &former);
  {
    StopSignals signals;
    SingleGroup group;
    signals.arm(group);
    raise(SIGUSR1);
    EXPECT_EQ(0, seen);
    EXPECT_THROW(StopSignals(), InternalError);
  }
  raise(SIGUSR1);
  EXPECT_EQ(1, seen);
  sigaction(SIGUSR1, &former, nullptr);
}

TEST(StopSignalsDeathTest, EndAtOnceBeforeTheyAreArmed) {
  const auto early = [] {
    StopSignals signals;
    raise(SIGTERM);
  };
  EXPECT_EXIT(early(), ExitedWithCode(128 + SIGTERM), "");
}

TEST(StopSignalsDeathTest, EndAtOnceTheSecondTime) {
  const auto twice = [] {
    StopSignals signals;
    SingleGroup group;
    signals.arm(group);
    raise(SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    raise(SIGINT);
  };
  EXPECT_EXIT(twice(), ExitedWithCode(128 + SIGINT), "");
}

TEST(LastWords, GoToTheLaunchersFile) {
  const std::string path = testing::TempDir() + "last_words";
  std::ofstream(path).close();
  setenv("OCTAVO_LAST_WORDS", path.c_str(), 1);
  say_last_words("corpus.de:17: not UTF-8\nMend it.");
  tell_exit_code(2);
  tell_exit_code(143);
  tell_ready();
  EXPECT_TRUE(std::filesystem::remove(path + ".ready"));
  unsetenv("OCTAVO_LAST_WORDS");
  EXPECT_EQ("say error: corpus.de:17: not UTF-8\nsay Mend it.\nexit 002\nexit 143\n",
            read_file(path));
  std::filesystem::remove(path);
  tell_exit_code(0);  // nobody listens
  tell_ready();
  EXPECT_FALSE(std::filesystem::exists(path + ".ready"));
}

TEST(ReduceControl, GivesBackValuesAndTheFlag) {
  SingleGroup group;
  std::vector<double> values = {1.0, -2.5};
  EXPECT_FALSE(reduce_control(group, values, false));
  EXPECT_TRUE(reduce_control(group, values, true));
  EXPECT_EQ((std::vector<double>{1.0, -2.5}), values);
  EXPECT_TRUE(reduce_control(group, {}, true));
  std::vector<double> most(kMostControlValues), more(kMostControlValues + 1);
  EXPECT_FALSE(reduce_control(group, most, false));
  EXPECT_THROW(reduce_control(group, more, false), InternalError);
}

// All ranks say that they stop, and after the same update.
void expect_one_stop(const std::string& output, int ranks) {
  std::string update;
  for (int r = 0; r < ranks; ++r) {
    const std::string line = "rank " + std::to_string(r) + " stops after update ";
    const std::size_t at = output.find(line);
    ASSERT_NE(std::string::npos, at) << output;
    const std::size_t number = at + line.size();
    const std::string mine = output.substr(number, output.find('\n', number) - number);
    if (r == 0) update = mine;
    EXPECT_EQ(update, mine) << output;
  }
}

class StopOf : public testing::TestWithParam<int> {};

TEST_P(StopOf, MpirunStopsAllRanksAtOneUpdate) {
  testkit::Ranks run(3, "stop_politely");
  ASSERT_TRUE(run.says("rank 0 is") && run.says("rank 1 is") && run.says("rank 2 is"));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  kill(run.process(), GetParam());
  // Open MPI 4.1 itself leaves with 1 after SIGINT and SIGTERM, whatever its ranks do.
  EXPECT_EQ(GetParam() == SIGUSR1 ? 0 : 1, run.exit_code());
  expect_one_stop(run.output(), 3);
}
INSTANTIATE_TEST_SUITE_P(Signals, StopOf, testing::Values(SIGTERM, SIGINT, SIGUSR1));

TEST(Stop, OneRankStopsAllRanksAtOneUpdate) {
  testkit::Ranks run(3, "stop_politely");
  ASSERT_TRUE(run.says("rank 0 is") && run.says("rank 1 is") && run.says("rank 2 is process "));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  kill(run.process(2), SIGTERM);
  EXPECT_EQ(0, run.exit_code());
  expect_one_stop(run.output(), 3);
}

}  // namespace
}  // namespace octavo
