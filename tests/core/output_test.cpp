#include "core/output.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "core/error.h"
#include "core/file.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using testkit::in_child;

/// Makes standard output of this (child) process the file at `path`.
void redirect_output(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  expect(file >= 0 && ::dup2(file, STDOUT_FILENO) >= 0, "redirect_output failed");
}

TEST(StandardOutput, KeepsEveryByte) {
  const testkit::TempFolder folder;
  const std::string text(200'001, 'x');
  in_child([&] {
    redirect_output(folder / "out");
    StandardOutput out;
    out.write("a");
    out.write(text);
    out.flush();
    out.write("b");
    return std::string();  // the destructor writes the rest
  });
  EXPECT_EQ("a" + text + "b", read_file(folder / "out"));
}

TEST(StandardOutput, RefusesAFullDisk) {
  EXPECT_EQ("cannot write standard output: No space left on device", in_child([] {
              redirect_output("/dev/full");
              StandardOutput out;
              out.write("a");
              return testkit::message_of<UserError>([&] { out.flush(); });
            }));
}

TEST(StandardOutput, TellsThatTheReaderHasGone) {
  EXPECT_EQ(
      "standard output was closed", in_child([] {
        std::signal(SIGPIPE, SIG_IGN);
        std::array<int, 2> ends{};
        expect(::pipe(ends.data()) == 0, "pipe failed");
        ::dup2(ends[1], STDOUT_FILENO);
        ::close(ends[0]);
        StandardOutput out;
        return testkit::message_of<OutputClosed>([&] { out.write(std::string(70'000, 'x')); });
      }));
}

}  // namespace
}  // namespace octavo
