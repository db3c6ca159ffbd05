#include "trainer/run_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>

#include "core/error.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using testkit::in_child;
using testkit::message_of;
using testkit::TempFolder;

TEST(RunLock, KeepsASecondTrainingOut) {
  const TempFolder run;
  std::optional<RunLock> first(run.path());
  const std::string refused =
      message_of<UserError>([&] { const RunLock second(run.path(), 0.05); });
  EXPECT_THAT(refused, testing::HasSubstr("is in use by another training, process " +
                                          std::to_string(getpid()) + " on "));
  first.reset();
  EXPECT_EQ("nothing thrown", message_of<UserError>([&] { const RunLock second(run.path(), 0); }));
}

TEST(RunLock, IsGoneWithAProcessThatDies) {
  const TempFolder run;
  EXPECT_EQ("died", in_child([&]() -> std::string {
              const RunLock lock(run.path(), 0);
              _exit(9);
            }));
  EXPECT_EQ("nothing thrown", message_of<UserError>([&] { const RunLock mine(run.path(), 0); }));
}

TEST(RunLock, NeedsAFolder) {
  const TempFolder run;
  EXPECT_THAT(message_of<UserError>([&] { const RunLock lock(run / "absent"); }),
              testing::HasSubstr("absent/lock: No such file or directory"));
}

}  // namespace
}  // namespace octavo
