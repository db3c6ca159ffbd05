// One rank fails while the others wait: all end soon, with one message and a useful exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>

#include "tests/comm/ranks.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using testkit::occurrences;
using testkit::Ranks;

// Ends within ten seconds; every process is gone.
struct Ending {
  int exit_code;
  std::string output;
};
Ending end_of(int ranks, const std::string& scenario, double argument = 0.0) {
  Ranks run(ranks, scenario, argument);
  for (int r = 0; r < ranks; ++r) EXPECT_TRUE(run.says("rank " + std::to_string(r) + " is"));
  const int code = run.exit_code(10.0);
  for (int r = 0; r < ranks; ++r)
    EXPECT_FALSE(testkit::is_running(run.process(r))) << "rank " << r << " still runs";
  return {code, run.output()};
}

class FailureOf : public testing::TestWithParam<int> {};

TEST_P(FailureOf, OneRankByException) {
  const Ending end = end_of(3, "exception", GetParam());
  EXPECT_EQ(2, end.exit_code);
  const std::string message =
      "error: rank " + std::to_string(GetParam()) + ": corpus.de:17: not UTF-8";
  EXPECT_THAT(end.output, HasSubstr(message));
  EXPECT_EQ(1, occurrences(end.output, "error:")) << end.output;
}

TEST_P(FailureOf, OneRankByExit) {
  const Ending end = end_of(3, "exit", GetParam());
  EXPECT_EQ(3, end.exit_code);
  EXPECT_THAT(end.output, HasSubstr("rank " + std::to_string(GetParam()) + ": its process ended"));
  EXPECT_EQ(1, occurrences(end.output, "error:")) << end.output;
}

TEST_P(FailureOf, OneRankByKill) {
  const Ending end = end_of(3, "kill", GetParam());
  EXPECT_EQ(128 + SIGKILL, end.exit_code);
  EXPECT_THAT(end.output, HasSubstr("rank " + std::to_string(GetParam()) + ": its process ended"));
  EXPECT_EQ(1, occurrences(end.output, "error:")) << end.output;
}

TEST_P(FailureOf, OneRankThatIsStopped) {
  const Ending end = end_of(3, "stop", GetParam());
  EXPECT_EQ(3, end.exit_code);
  EXPECT_THAT(end.output, HasSubstr("collective 4 (all-reduce, 300000 x f32), waiting for 1."));
  for (int r = 0; r < 3; ++r) {
    if (r == GetParam()) continue;
    EXPECT_THAT(end.output, HasSubstr("[comm] rank " + std::to_string(r) + ": collective 4"));
  }
}

TEST_P(FailureOf, OneRankThatIsAbsent) {
  const Ending end = end_of(3, "absence", GetParam());
  EXPECT_EQ(3, end.exit_code);
  for (int r = 0; r < 3; ++r)
    EXPECT_THAT(end.output, HasSubstr("[comm] rank " + std::to_string(r) + ": collective " +
                                      (r == GetParam() ? "3" : "4")));
}

TEST_P(FailureOf, OneRankAmidSums) {
  const Ending end = end_of(3, "amid_sums", GetParam());
  EXPECT_EQ(2, end.exit_code);
  EXPECT_EQ(1, occurrences(end.output, "error:")) << end.output;
  EXPECT_EQ(1, occurrences(end.output, "corpus.de:17: not UTF-8")) << end.output;
}

INSTANTIATE_TEST_SUITE_P(Ranks, FailureOf, testing::Values(0, 1));

TEST(Failure, OfAllRanksIsSaidOnce) {
  const Ending end = end_of(5, "everywhere");
  EXPECT_EQ(2, end.exit_code);
  EXPECT_EQ(1, occurrences(end.output, "corpus.de:17: not UTF-8")) << end.output;
}

TEST(Failure, WithoutACatchEndsThePeersInSilence) {
  const Ending end = end_of(3, "without_catching");
  EXPECT_EQ(3, end.exit_code);
  EXPECT_EQ(1, occurrences(end.output, "left without a catch")) << end.output;
  EXPECT_EQ(0, occurrences(end.output, "error:")) << end.output;
}

TEST(Failure, OfAgreementIsExplained) {
  const Ending end = end_of(3, "disagreement");
  EXPECT_EQ(3, end.exit_code);
  EXPECT_THAT(end.output, HasSubstr("rank 0: collective 4 (all-reduce, 10 x f64)"));
  EXPECT_THAT(end.output, HasSubstr("rank 1: collective 4 (all-reduce, 11 x f64)"));
}

}  // namespace
}  // namespace octavo
