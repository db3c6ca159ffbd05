#include "core/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

#include "core/error.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using testkit::in_child;
using testkit::message_of;
using testkit::TempFolder;

TEST(FolderLock, KeepsASecondProcessOut) {
  const TempFolder folder;
  auto first = std::make_unique<FolderLock>(folder.path(), "a.b");
  const std::string refused =
      message_of<UserError>([&] { const FolderLock second(folder.path(), "a.b", 0.05); });
  EXPECT_THAT(refused,
              testing::HasSubstr(" is in use by process " + std::to_string(getpid()) + " on "));
  first.reset();
  EXPECT_EQ("nothing thrown",
            message_of<UserError>([&] { const FolderLock second(folder.path(), "a.b", 0); }));
}

TEST(FolderLock, IsGoneWithAProcessThatDies) {
  const TempFolder folder;
  EXPECT_EQ("died", in_child([&]() -> std::string {
              const FolderLock lock(folder.path(), "a.b", 0);
              _exit(9);
            }));
  EXPECT_EQ("nothing thrown",
            message_of<UserError>([&] { const FolderLock mine(folder.path(), "a.b", 0); }));
}

TEST(FolderLock, NeedsAFolder) {
  const TempFolder folder;
  EXPECT_THAT(message_of<UserError>([&] { const FolderLock lock(folder / "absent", "a.b"); }),
              testing::HasSubstr("absent/lock: No such file or directory"));
}

}  // namespace
}  // namespace octavo
