#include "core/log.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

namespace octavo {
namespace {

std::string said_by(int rank) {
  testing::internal::CaptureStderr();
  set_up_log(rank);
  spdlog::debug("[core] hidden");
  spdlog::info("[core] told {}", 1);
  spdlog::warn("[core] odd");
  spdlog::error("[core] wrong");
  return testing::internal::GetCapturedStderr();
}

TEST(Log, RankZeroTellsEverything) {
  EXPECT_EQ("[core] told 1\nwarning: [core] odd\nerror: [core] wrong\n", said_by(0));
}

TEST(Log, OtherRanksTellErrorsOnly) {
  EXPECT_EQ("rank 3: error: [core] wrong\n", said_by(3));
  set_up_log(0);
}

}  // namespace
}  // namespace octavo
