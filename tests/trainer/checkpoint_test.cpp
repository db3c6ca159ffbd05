#include "trainer/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "core/error.h"
#include "core/file.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testkit::message_of;
using testkit::TempFolder;

const std::array<float, 4> kWeights{1.5f, -2.0f, 0.0f, 3.0f};

CheckpointContents sample() {
  CheckpointContents contents;
  contents.tensors[std::string(kWeightsFile)] = {
      {"w", DType::f32, {2, 2}, std::as_bytes(std::span(kWeights))}};
  contents.texts[std::string(kStateFile)] = to_json({.update = 7, .seconds = 0.1});
  contents.texts[std::string(kSettingsFile)] = "model:\n  width: 2\n";
  contents.texts["subwords.model"] = std::string("a\0b\xff", 4);
  contents.texts["empty"] = "";
  contents.remarks = {{"made", "by a test"}};
  return contents;
}

/// Replaces a file's bytes without fsync.
void overwrite(const fs::path& path, const std::string& contents) {
  fs::remove(path);
  std::ofstream(path, std::ios::binary) << contents;
}

std::int64_t entries_in(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), {});
}

TEST(Checkpoint, ComesBackWhole) {
  const TempFolder folder;
  write_checkpoint(folder / "a", sample());
  const Checkpoint checkpoint(folder / "a");
  checkpoint.verify();
  EXPECT_EQ(5u, checkpoint.files().size());
  EXPECT_THAT(checkpoint.program(), testing::StartsWith("octavo "));
  EXPECT_EQ(7, checkpoint.state().update);
  EXPECT_EQ(sample().texts.at("subwords.model"), checkpoint.text("subwords.model"));
  EXPECT_EQ("", checkpoint.text("empty"));
  const SafetensorsFile file = checkpoint.tensors(kWeightsFile);
  ASSERT_EQ(1u, file.entries().size());
  EXPECT_EQ("by a test", file.metadata().at("made"));
  const auto bytes = file.bytes(file.entries()[0]);
  std::array<float, 4> weights{};
  ASSERT_EQ(sizeof weights, bytes.size());
  std::memcpy(weights.data(), bytes.data(), sizeof weights);
  EXPECT_EQ(kWeights, weights);
  EXPECT_EQ(1, entries_in(folder.path()));
}

TEST(Checkpoint, TranslatesFromTheAveragesIfThereAreAny) {
  const TempFolder folder;
  CheckpointContents contents = sample();
  write_checkpoint(folder / "a", contents);
  EXPECT_EQ(kWeightsFile, Checkpoint(folder / "a").translation_weights().path().filename());
  contents.tensors[std::string(kEmaFile)] = contents.tensors.at(std::string(kWeightsFile));
  write_checkpoint(folder / "b", contents);
  EXPECT_EQ(kEmaFile, Checkpoint(folder / "b").translation_weights().path().filename());
}

TEST(Checkpoint, ReplacesAnOlderOneOfTheSameName) {
  const TempFolder folder;
  write_checkpoint(folder / "a", sample());
  CheckpointContents contents = sample();
  contents.texts.erase("empty");
  write_checkpoint(folder / "a/", contents);
  EXPECT_EQ(4u, Checkpoint(folder / "a").files().size());
  EXPECT_EQ(1, entries_in(folder.path()));
}

TEST(Checkpoint, IsRemovedWhole) {
  const TempFolder folder;
  write_checkpoint(folder / "a", sample());
  fs::create_directory(folder / "a.octavo.tmp");  // an earlier removal was killed
  remove_checkpoint(folder / "a");
  EXPECT_EQ(0, entries_in(folder.path()));
  EXPECT_THAT(message_of<UserError>([&] { remove_checkpoint(folder / "a"); }),
              HasSubstr("No such file"));
}

TEST(Checkpoint, LeftoversGoAndNothingElse) {
  const TempFolder folder;
  write_checkpoint(folder / "a", sample());
  fs::create_directory(folder / "b.octavo.tmp");
  folder.write("b.octavo.tmp/weights.safetensors.tmp.123", "x");
  folder.write("notes.tmp", "mine");
  remove_leftovers(folder.path());
  EXPECT_EQ(2, entries_in(folder.path()));
  EXPECT_TRUE(fs::exists(folder / "notes.tmp"));
  EXPECT_THAT(message_of<UserError>([&] { remove_leftovers(folder / "none"); }),
              HasSubstr("cannot list"));
}

TEST(Checkpoint, SaysWhatIsNoCheckpoint) {
  const TempFolder folder;
  EXPECT_THAT(message_of<UserError>([&] { Checkpoint c(folder.path()); }),
              HasSubstr("it has no manifest.json"));
  EXPECT_THAT(message_of<UserError>([&] { Checkpoint c(folder / "none"); }), HasSubstr("none"));
  write_checkpoint(folder / "a", sample());
  const Checkpoint checkpoint(folder / "a");
  EXPECT_THAT(message_of<UserError>([&] { checkpoint.tensors(kEmaFile); }),
              HasSubstr("a has no ema.safetensors"));
  EXPECT_THAT(message_of<UserError>([&] { checkpoint.text("manifest.json"); }),
              HasSubstr("has no manifest.json"));
}

TEST(Checkpoint, EveryFlippedBitIsFoundAndItsFileNamed) {
  const TempFolder folder;
  write_checkpoint(folder / "a", sample());
  const Checkpoint checkpoint(folder / "a");
  for (const auto& [name, file] : checkpoint.files()) {
    const std::string whole = read_file(folder / "a" / name);
    for (std::size_t bit = 0; bit < whole.size() * 8; bit += 37) {
      std::string damaged = whole;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      overwrite(folder / "a" / name, damaged);
      EXPECT_THAT(message_of<UserError>([&] { Checkpoint(folder / "a").verify(); }),
                  AllOf(HasSubstr("is damaged"), HasSubstr(name)));
    }
    overwrite(folder / "a" / name, whole);
  }
  overwrite(folder / "a" / std::string(kStateFile), to_json({.update = 8, .seconds = 0.1}));
  EXPECT_THAT(message_of<UserError>([&] { Checkpoint(folder / "a").state(); }),
              HasSubstr("state.json has other content"));
}

TEST(Checkpoint, MissingShortAndLongFilesAreNamedAtOnce) {
  const TempFolder folder;
  write_checkpoint(folder / "a", sample());
  const Checkpoint checkpoint(folder / "a");
  for (const auto& [name, file] : checkpoint.files()) {
    const std::string whole = read_file(folder / "a" / name);
    const auto refusal = [&] { return message_of<UserError>([&] { Checkpoint c(folder / "a"); }); };
    overwrite(folder / "a" / name, whole + "x");
    EXPECT_THAT(refusal(), HasSubstr(name + " has " + std::to_string(whole.size() + 1) + " bytes"));
    if (!whole.empty()) {
      overwrite(folder / "a" / name, whole.substr(1));
      EXPECT_THAT(refusal(), HasSubstr(name + " has"));
    }
    fs::remove(folder / "a" / name);
    EXPECT_THAT(refusal(), HasSubstr(name + ": No such file"));
    overwrite(folder / "a" / name, whole);
  }
}

TEST(Checkpoint, DamagedManifestsDoNoHarm) {
  const TempFolder folder;
  write_checkpoint(folder / "a", sample());
  const fs::path path = folder / "a" / "manifest.json";
  const std::string whole = read_file(path);
  std::int64_t refused = 0;
  const auto try_it = [&](const std::string& text) {
    overwrite(path, text);
    try {
      Checkpoint(folder / "a").verify();
    } catch (const UserError&) {
      ++refused;
    }
  };
  for (std::size_t size = 0; size < whole.size(); size += 3) try_it(whole.substr(0, size));
  const auto truncated = static_cast<std::int64_t>((whole.size() + 2) / 3);
  EXPECT_EQ(truncated, refused + (whole.size() % 3 == 1 ? 1 : 0));  // the last may lose only "\n"
  for (std::size_t bit = 0; bit < whole.size() * 8; bit += 3) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    try_it(damaged);
  }
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    overwrite(path, text);
    return message_of<UserError>([&] { Checkpoint c(folder / "a"); });
  };
  EXPECT_THAT(refusal("\"version\": 1", "\"version\": 2"), HasSubstr("version 2 of the format"));
  EXPECT_THAT(refusal("octavo checkpoint", "something else"), HasSubstr("another format"));
  EXPECT_THAT(refusal("\"empty\"", "\"../a/empty\""), HasSubstr("bad entry"));
  EXPECT_THAT(refusal("\"size\": 0", "\"size\": -1"), HasSubstr("bad entry"));
  EXPECT_THAT(refusal("\"size\": 0", "\"size\": 18446744073709551615"), HasSubstr("is damaged"));
}

TEST(Checkpoint, AFullDiskLeavesNothingAndSaysSo) {
  const TempFolder folder;
  write_checkpoint(folder / "a", sample());
  std::vector<float> large(1 << 20);
  CheckpointContents contents = sample();
  contents.tensors[std::string(kOptimizerFile)] = {
      {"w", DType::f32, {1 << 20}, std::as_bytes(std::span(large))}};
  for (const std::int64_t limit : {0, 5, 200, 1'000'000}) {
    for (const char* name : {"a", "b"}) {
      const std::string message = testkit::with_file_size_limit(limit, [&] {
        write_checkpoint(folder / name, contents);
        return std::string("written");
      });
      EXPECT_THAT(message, AllOf(HasSubstr("cannot save the checkpoint"), HasSubstr(name),
                                 HasSubstr("File too large"), HasSubstr("are untouched")));
    }
    Checkpoint(folder / "a").verify();
    EXPECT_EQ(5u, Checkpoint(folder / "a").files().size());
    EXPECT_EQ(1, entries_in(folder.path()));
  }
}

TEST(Checkpoint, AFolderThatCannotBeWrittenIsAnError) {
  const TempFolder folder;
  fs::permissions(folder.path(), fs::perms(0555));
  EXPECT_THAT(testkit::as_ordinary_user([&] {
                write_checkpoint(folder / "a", sample());
                return std::string("written");
              }),
              AllOf(HasSubstr("cannot save"), HasSubstr("Permission denied")));
  fs::permissions(folder.path(), fs::perms::owner_all);
  EXPECT_THAT(message_of<UserError>([&] { write_checkpoint(folder / "none" / "a", sample()); }),
              HasSubstr("No such file"));
  folder.write("file", "");
  EXPECT_THAT(message_of<UserError>([&] { write_checkpoint(folder / "file", sample()); }),
              HasSubstr("Not a directory"));
  EXPECT_EQ(1, entries_in(folder.path()));
}

TEST(Checkpoint, CallersGiveFilesPlainNames) {
  const TempFolder folder;
  for (const char* name : {"", ".", "..", "a/b", "manifest.json", "weights.safetensors"}) {
    CheckpointContents contents = sample();
    contents.texts[name] = "x";
    EXPECT_NE("nothing thrown",
              message_of<InternalError>([&] { write_checkpoint(folder / "a", contents); }));
    EXPECT_FALSE(fs::exists(folder / "a"));
  }
}

TEST(CheckpointHashes, MustAgree) {
  const std::map<std::string, std::string> saved{{"data", "1"}, {"vocabulary", "2"}};
  check_hashes("c", saved, saved);
  EXPECT_THAT(message_of<UserError>([&] {
                check_hashes("c", saved, {{"data", "3"}, {"x", "2"}});
              }),
              AllOf(HasSubstr("c was made with"), HasSubstr("data has hash 3 and had 1"),
                    HasSubstr("vocabulary is gone"), HasSubstr("x is new.")));
}

}  // namespace
}  // namespace octavo
