#include "core/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testkit::message_of;
using testkit::TempFolder;

std::int64_t files_in(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

TEST(AtomicFile, AppearsOnlyAtCommit) {
  const TempFolder folder;
  AtomicFile file(folder / "a");
  file.write("hello ");
  file.write("world");
  EXPECT_FALSE(fs::exists(folder / "a"));
  EXPECT_EQ(11, file.size());
  EXPECT_EQ(hash_bytes("hello world"), file.hash());
  file.commit();
  EXPECT_EQ("hello world", read_file(folder / "a"));
  EXPECT_EQ(1, files_in(folder.path()));
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const TempFolder folder;
  folder.write("a", "old");
  {
    AtomicFile file(folder / "a");
    file.write(std::string(3 << 20, 'x'));  // more than the buffer: reaches the disk
    EXPECT_EQ(2, files_in(folder.path()));
  }
  EXPECT_EQ("old", read_file(folder / "a"));
  EXPECT_EQ(1, files_in(folder.path()));
}

TEST(AtomicFile, EmptyAndLargeFilesArriveWhole) {
  const TempFolder folder;
  write_file(folder / "empty", "");
  EXPECT_EQ(0u, fs::file_size(folder / "empty"));
  std::string large;
  for (int i = 0; i < 700'000; ++i) large += static_cast<char>(i * 7 + i / 251);
  AtomicFile file(folder / "large");
  for (std::size_t at = 0; at < large.size(); at += 9973)
    file.write(std::as_bytes(
        std::span(large).subspan(at, std::min<std::size_t>(9973, large.size() - at))));
  EXPECT_EQ(hash_bytes(large), file.hash());
  file.commit();
  EXPECT_EQ(large, read_file(folder / "large"));
  EXPECT_EQ(hash_bytes(large), hash_file(folder / "large"));
}

TEST(AtomicFile, SaysWhyTheFolderCannotBeWritten) {
  const TempFolder folder;
  folder.write("file", "");
  EXPECT_THAT(message_of<UserError>([&] { AtomicFile(folder / "file" / "a"); }),
              testing::AllOf(HasSubstr("file/a"), HasSubstr("Not a directory")));
  EXPECT_THAT(message_of<UserError>([&] { AtomicFile(folder / "none" / "a"); }),
              HasSubstr("No such file or directory"));
  EXPECT_EQ(1, files_in(folder.path()));
}

TEST(AtomicFile, RefusesAReadOnlyFolder) {
  const TempFolder folder;
  fs::permissions(folder.path(), fs::perms(0555));
  EXPECT_THAT(testkit::as_ordinary_user([&] {
                write_file(folder / "a", "x");
                return std::string("written");
              }),
              testing::AllOf(testing::StartsWith("threw: cannot write"),
                             HasSubstr("/a: Permission denied")));
  fs::permissions(folder.path(), fs::perms::owner_all);
}

TEST(AtomicFile, NeverReplacesAFolderOrADevice) {
  const TempFolder folder;
  EXPECT_THAT(message_of<UserError>([&] { AtomicFile file(folder.path()); }),
              HasSubstr("not an ordinary file"));
  EXPECT_THAT(message_of<UserError>([&] { AtomicFile file("/dev/null"); }),
              HasSubstr("not an ordinary file"));
}

TEST(AtomicFile, AFullDiskIsAnErrorAndLeavesTheOldFile) {
  const TempFolder folder;
  folder.write("a", "old");
  const std::string flushed = testkit::with_file_size_limit(10'000, [&] {
    AtomicFile file(folder / "a");
    file.write(std::string(2 << 20, 'x'));
    return std::string("written");
  });
  EXPECT_THAT(flushed, testing::AllOf(testing::StartsWith("threw: cannot write "),
                                      HasSubstr("/a: File too large")));
  const std::string committed = testkit::with_file_size_limit(10'000, [&] {
    write_file(folder / "a", std::string(10'001, 'x'));
    return std::string("written");
  });
  EXPECT_THAT(committed, HasSubstr("/a: File too large"));
  EXPECT_EQ("old", read_file(folder / "a"));
  EXPECT_EQ(1, files_in(folder.path()));
  EXPECT_EQ("written", testkit::with_file_size_limit(10'000, [&] {
              write_file(folder / "a", std::string(10'000, 'x'));
              return std::string("written");
            }));
}

TEST(AtomicFile, IsOfNoUseAfterAFailure) {
  const TempFolder folder;
  const std::string result = testkit::with_file_size_limit(100, [&] {
    AtomicFile file(folder / "a");
    const std::string first = message_of<UserError>([&] { file.write(std::string(2 << 20, 'x')); });
    return first.substr(0, 12) + "; " + message_of<InternalError>([&] { file.commit(); });
  });
  EXPECT_EQ("cannot write; AtomicFile::commit: committed or failed before", result);
  EXPECT_EQ(0, files_in(folder.path()));
}

TEST(AtomicFile, ARenameThatFailsLeavesNothing) {
  const TempFolder folder;
  AtomicFile file(folder / "a");
  file.write("new");
  fs::create_directory(folder / "a");  // somebody was faster
  EXPECT_THAT(message_of<UserError>([&] { file.commit(); }), HasSubstr("Is a directory"));
  EXPECT_EQ(1, files_in(folder.path()));
}

TEST(AtomicFile, WritesRelativePaths) {
  const TempFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  write_file("plain", "x");
  fs::current_path(before);
  EXPECT_EQ("x", read_file(folder / "plain"));
}

TEST(Hash, IsXxh3) {
  EXPECT_EQ("2d06800538d394c2", hash_bytes(""));  // XXH3_64bits of nothing, from its test vectors
  EXPECT_NE(hash_bytes("a"), hash_bytes("b"));
  const TempFolder folder;
  EXPECT_EQ(hash_bytes(""), hash_file(folder.write("empty", "")));
  EXPECT_THAT(message_of<UserError>([&] { hash_file(folder / "none"); }), HasSubstr("none"));
  EXPECT_THAT(message_of<UserError>([&] { hash_file(folder.path()); }),
              HasSubstr("Is a directory"));
}

TEST(ReadFile, KeepsEveryByte) {
  const TempFolder folder;
  const std::string contents("a\0b\r\n\xff", 6);
  EXPECT_EQ(contents, read_file(folder.write("a", contents)));
  EXPECT_THAT(message_of<UserError>([&] { read_file(folder / "none"); }),
              testing::AllOf(HasSubstr("none"), HasSubstr("No such file or directory")));
}

TEST(MappedFile, ShowsTheBytes) {
  const TempFolder folder;
  MappedFile first(folder.write("a", "abc"));
  ASSERT_EQ(3u, first.bytes().size());
  EXPECT_EQ(std::byte{'c'}, first.bytes()[2]);
  const MappedFile second(std::move(first));
  EXPECT_EQ(std::byte{'a'}, second.bytes()[0]);
  EXPECT_TRUE(MappedFile(folder.write("empty", "")).bytes().empty());
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  const TempFolder folder;
  EXPECT_THAT(message_of<UserError>([&] { MappedFile(folder / "none"); }),
              HasSubstr("No such file or directory"));
  EXPECT_THAT(message_of<UserError>([&] { MappedFile file(folder.path()); }),
              HasSubstr("not an ordinary file"));
}

}  // namespace
}  // namespace octavo
