#include "core/recorder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace octavo {
namespace {

void wait(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

TEST(Profile, AnOpInsideAnotherKeepsItsOwnTime) {
  Profile profile;
  profile.begin({.name = "outer", .flops = 3, .bytes = 5});
  profile.begin({.name = "inner", .flops = 7, .bytes = 11});
  wait(20);
  profile.end();
  profile.end();
  profile.begin({.name = "inner", .flops = 7, .bytes = 11});
  profile.end();
  EXPECT_EQ(17, profile.flops());
  const Profile::Entry& inner = profile.entries().find("inner")->second;
  const Profile::Entry& outer = profile.entries().find("outer")->second;
  EXPECT_EQ(2, inner.calls);
  EXPECT_EQ(14, inner.flops);
  EXPECT_EQ(22, inner.bytes);
  EXPECT_GE(inner.seconds, 0.02);
  EXPECT_EQ(1, outer.calls);
  EXPECT_LT(outer.seconds, inner.seconds);
}

}  // namespace
}  // namespace octavo
