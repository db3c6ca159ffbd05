#include "trainer/record_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <memory>
#include <sstream>

#include "core/error.h"
#include "core/file.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testkit::TempFolder;

TEST(RecordFile, AppendsAtOnce) {
  const TempFolder folder;
  folder.write("a", "old\n");
  RecordFile file(folder / "a");
  EXPECT_EQ("old\n", read_file(folder / "a"));
  file.append("one\n");
  EXPECT_EQ("old\none\n", read_file(folder / "a"));
  RecordFile(folder / "b").append("");
  EXPECT_EQ("", read_file(folder / "b"));
}

TEST(RecordFile, CannotStartInABadPlace) {
  const TempFolder folder;
  EXPECT_THAT(testkit::message_of<UserError>([&] { RecordFile file(folder / "none" / "a"); }),
              HasSubstr("none/a: No such file"));
  EXPECT_THAT(testkit::message_of<UserError>([&] { RecordFile file(folder.path()); }),
              HasSubstr("Is a directory"));
}

TEST(RecordFile, SurvivesAKill) {
  const TempFolder folder;
  EXPECT_EQ("died", testkit::in_child([&] {
              RecordFile file(folder / "a");
              file.append("one\n");
              std::raise(SIGKILL);
              return std::string();
            }));
  EXPECT_EQ("one\n", read_file(folder / "a"));
}

/// What f() logs.
std::string log_of(const std::function<void()>& f) {
  std::ostringstream text;
  auto logger =
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_st>(text));
  logger->set_pattern("%v");
  spdlog::set_default_logger(logger);
  f();
  return text.str();
}

TEST(RecordFile, AFullDiskIsToldOnceAndLeavesTheFileSound) {
  const TempFolder folder;
  const std::string log = testkit::with_file_size_limit(30, [&] {
    return log_of([&] {
      RecordFile file(folder / "a");
      for (int i = 0; i < 5; ++i) file.append("record " + std::to_string(i) + "...\n");  // 12 each
      file.append("\n");  // still fits
      file.append(std::string(100, 'x'));
      file.append(std::string(100, 'y'));
    });
  });
  EXPECT_EQ("record 0...\nrecord 1...\n\n", read_file(folder / "a"));
  EXPECT_THAT(log, AllOf(HasSubstr("/a: File too large. Training goes on"), HasSubstr("make room"),
                         HasSubstr("a is written again; 3 records before this one are missing"),
                         HasSubstr("the last 2 records are missing in")));
  EXPECT_EQ(4, std::count(log.begin(), log.end(), '\n')) << log;
}

}  // namespace
}  // namespace octavo
