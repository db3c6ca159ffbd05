// Bad text, settings and places, through the program: each gives a clear error or a counted drop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/file.h"
#include "core/lines.h"
#include "tests/end_to_end/experiment_folder.h"
#include "tests/testkit/child.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testkit::expect_user_error;
using testkit::ExperimentFolder;
using testkit::ProgramResult;
using testkit::run_shell;

class BadInput : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new ExperimentFolder(10);
    // Ordinary users must get in to be refused by what is inside.
    fs::permissions(folder_->path("."), fs::perms::others_read | fs::perms::others_exec,
                    fs::perm_options::add);
    std::vector<std::string> settings = ExperimentFolder::tiny_model();
    settings.emplace_back("trainer.max_updates=4");
    settings.emplace_back("trainer.checkpoints.every_updates=2");
    const ProgramResult trained = folder_->train("run", settings);
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
  }
  static void TearDownTestSuite() { delete folder_; }

  static void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_->path(name), std::ios::binary) << bytes;
  }
  /// The source of `lines` training pairs, or their target.
  static std::vector<std::string> text(const char* side, std::size_t lines) {
    std::vector<std::string> all = read_lines(folder_->path(std::string("train.") + side));
    all.resize(lines);
    return all;
  }
  static std::string joined(const std::vector<std::string>& lines) {
    std::string all;
    for (const std::string& line : lines) all += line + '\n';
    return all;
  }
  /// Settings that make the program read bad.source and bad.target into a new folder.
  static std::vector<std::string> bad_pair() {
    fs::remove_all(folder_->path("bad_prepared"));
    return {"data.train=[{source: " + folder_->path("bad.source") +
                ", target: " + folder_->path("bad.target") + "}]",
            "data.prepared=" + folder_->path("bad_prepared")};
  }
  static void expect_refused(const std::vector<std::string>& parts) {
    expect_user_error(folder_->prepare(bad_pair()), parts);
    EXPECT_FALSE(fs::exists(folder_->path("bad_prepared/train.0.corpus")));
  }

  static ExperimentFolder* folder_;
};
ExperimentFolder* BadInput::folder_ = nullptr;

TEST_F(BadInput, FilesThatAreNoParallelTextAreRefused) {
  const std::string source = joined(text("source", 300)), target = joined(text("target", 300));
  write("bad.target", target);
  write("bad.source", joined(text("source", 299)));
  expect_refused({"data.train[0]", "bad.source has 299 lines", "bad.target has 300"});
  write("bad.source", "");
  expect_refused({"bad.source has 0 lines", "bad.target has 300"});
  write("bad.source", std::string(300, '\n'));
  expect_refused({"bad.source", "300 pairs, 0 kept", "300 empty"});
  write("bad.source", std::string("\xff\n") + source.substr(source.find('\n') + 1, 100));
  expect_refused({"bad.source has", "bad.target has 300"});
  write("bad.target", "");
  write("bad.source", "");
  expect_refused({"no text to train"});

  write("bad.target", target);
  fs::remove(folder_->path("bad.source"));
  expect_refused({"data.train[0].source", "bad.source: No such file or directory"});
  fs::create_directory(folder_->path("bad.source"));
  expect_refused({"data.train[0].source", "bad.source is no ordinary file"});
  fs::remove(folder_->path("bad.source"));
}

TEST_F(BadInput, DamagedGzipIsRefused) {
  write("bad.target", joined(text("target", 300)));
  write("plain", joined(text("source", 300)));
  ASSERT_EQ(run_shell("gzip < \"$1\" > \"$2\"", {folder_->path("plain"), folder_->path("whole")})
                .exit_code,
            0);
  const std::string whole = read_file(folder_->path("whole"));
  write("bad.source", whole.substr(0, whole.size() / 2));
  expect_refused({"bad.source", "ends too early"});
  std::string flipped = whole;
  flipped[whole.size() / 2] = static_cast<char>(flipped[whole.size() / 2] ^ 0x10);
  write("bad.source", flipped);
  expect_refused({"bad.source", "the gzip data is damaged"});
  write("bad.source", whole);
  const ProgramResult good = folder_->prepare(bad_pair());
  EXPECT_EQ(good.exit_code, 0) << good.err;
}

/// Lines that trip up other programs: NUL, U+2028, NEL, CR, ill-formed UTF-8, 100,000 bytes, ...
std::vector<std::string> strange_lines() {
  return {"",
          "  \t",
          "\xff\xfe bad",
          "\xed\xa0\x80",
          std::string(100000, 'a'),
          std::string("nul \0 byte", 10),
          "u \u2028 sep \u0085 \u2029",
          "vt \v ff \f",
          "crlf\r",
          "lone\rcr",
          "\r",
          "\ufeff\ufffd\U0001F600",
          "</s> <pad> <unk> |||",
          "\x1f\x01\x7f"};
}

TEST_F(BadInput, StrangeLinesAreTrainedOnOrCounted) {
  std::vector<std::string> source = text("source", 300);
  const std::vector<std::string> strange = strange_lines();
  std::copy(strange.begin(), strange.end(), source.begin());
  write("bad.source", joined(source));
  write("bad.target", joined(text("target", 300)));
  const std::vector<std::string> settings = bad_pair();
  const ProgramResult prepared = folder_->prepare(settings);
  ASSERT_EQ(prepared.exit_code, 0) << prepared.err;
  EXPECT_THAT(prepared.err,
              HasSubstr("train.0: made; 300 pairs, 294 kept; dropped: 2 invalid UTF-8 (first: line "
                        "3), 3 empty (first: line 1), 1 too long (first: line 5)\n"));
  std::vector<std::string> all = ExperimentFolder::tiny_model();
  all.insert(all.end(), settings.begin(), settings.end());
  all.emplace_back("trainer.max_updates=none");
  all.emplace_back("trainer.max_epochs=1");
  const ProgramResult trained = folder_->train("strange_run", all);
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
}

TEST_F(BadInput, StrangeLinesAreTranslatedOneForOneInOrder) {
  const std::string known = text("source", 3)[2];
  std::string input;
  for (const std::string& line : strange_lines()) input.append(line).append("\n" + known + "\n");
  const std::vector<std::string> command{
      "translate", folder_->path("run"), "--beam", "1", "--threads", "1", "--batch-tokens", "512"};
  const ProgramResult translated = ExperimentFolder::octavo(command, input);
  ASSERT_EQ(translated.exit_code, 0) << translated.err;
  EXPECT_THAT(translated.err, HasSubstr("2 lines had ill-formed UTF-8"));
  EXPECT_THAT(translated.err, HasSubstr("1 line had too many tokens: split"));
  std::vector<std::string> out;
  std::istringstream lines(translated.out);
  for (std::string line; std::getline(lines, line);) out.push_back(line);
  ASSERT_EQ(out.size(), 2 * strange_lines().size());
  for (std::size_t i = 1; i < out.size(); i += 2) EXPECT_EQ(out[i], out[1]) << i;
  EXPECT_FALSE(out[1].empty());
  for (const std::size_t blank : {0, 2, 20}) EXPECT_EQ(out[blank], "") << blank;
  EXPECT_TRUE(is_valid_utf8(translated.out));

  write("input", input);
  const ProgramResult zipped =
      run_shell("gzip < \"$1\" | \"$2\" translate \"$3\" --beam 1 --threads 1 --batch-tokens 512",
                {folder_->path("input"), OCTAVO_PROGRAM, folder_->path("run")});
  EXPECT_EQ(zipped.out, translated.out);
}

TEST_F(BadInput, FilesThatAreNoSettingsAreRefused) {
  const auto expect_all = [](const std::string& file, const std::vector<std::string>& parts) {
    for (const char* command : {"prepare", "train", "plan"})
      expect_user_error(ExperimentFolder::octavo({command, file}), parts);
  };
  const auto expect_bad = [&](const std::string& contents, const std::string& part) {
    write("bad.yaml", contents);
    expect_all(folder_->path("bad.yaml"), {"bad.yaml", part});
  };
  expect_bad("", "no settings at all");
  expect_bad("# nothing\n", "no settings at all");
  expect_bad("ba du ki\nlo ne\n", ":1: expected 'name: value' lines");
  expect_bad("data: [1, 2\nmodel: {", ":2: not valid YAML");
  expect_bad("data:\n\ttrain: x\n", ":2: not valid YAML");
  expect_bad(std::string("data: {prepared: a\0b}\n", 22), ":1: a NUL byte");
  expect_bad(
      "\x7f"
      "ELF\xff\xfe",
      ":1: not valid UTF-8");
  expect_all(folder_->path("none.yaml"), {"none.yaml: No such file or directory"});
  expect_all(folder_->path("."), {"Is a directory"});
}

TEST_F(BadInput, NumbersOfThreadsThatMakeNoSenseAreRefused) {
  for (const char* command : {"prepare", "train", "plan"}) {
    for (const char* number : {"-1", "1025"})
      expect_user_error(ExperimentFolder::octavo({command, folder_->config(), "--threads", number}),
                        {std::string("--threads is ") + number, "between 1 and 1024"});
  }
}

TEST_F(BadInput, FoldersOfOthersAreRefused) {
  const std::string locked = folder_->path("locked");
  fs::create_directory(locked);
  fs::permissions(locked, fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                              fs::perms::others_exec);
  // Through a child, so that what as_ordinary_user() gives up is only its own.
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& part) {
    const std::string said = testkit::as_ordinary_user([&] {
      const ProgramResult result = testkit::run_program(arguments);
      return std::to_string(result.exit_code) + " " + result.err;
    });
    if (said.starts_with("126") || said.starts_with("127")) return;  // may not even run it
    EXPECT_THAT(said, testing::StartsWith("2 "));
    EXPECT_THAT(said, HasSubstr("error: "));
    EXPECT_THAT(said, HasSubstr("Permission denied"));
    EXPECT_THAT(said, HasSubstr(part));
  };
  refused(folder_->prepare_arguments({"data.prepared=" + locked}), "data.prepared: ");
  refused(folder_->prepare_arguments({"data.prepared=" + locked + "/new"}), "data.prepared: ");
  std::vector<std::string> settings = ExperimentFolder::tiny_model();
  refused(folder_->train_arguments("locked/run", settings), "trainer.output: ");
  refused(folder_->train_arguments("locked", settings), "locked");
  refused({OCTAVO_PROGRAM, "average", folder_->path("run"), "--last", "2", "--output",
           locked + "/average"},
          "locked/average");
  // What may not be looked at is not taken for absent.
  fs::permissions(locked, fs::perms::none);
  refused({OCTAVO_PROGRAM, "translate", locked}, "locked");
  refused({OCTAVO_PROGRAM, "plan", folder_->config(), "--set", "data.prepared=" + locked},
          "locked");
  fs::permissions(locked, fs::perms::owner_all);
}

TEST_F(BadInput, WithoutStandardErrorTrainingGoesOnAndItsLogsStaySound) {
  for (const char* ending : {"2>&-", "<&- >&- 2>&-", "2>/dev/full"}) {
    fs::remove_all(folder_->path("mute"));
    std::vector<std::string> settings = ExperimentFolder::tiny_model();
    settings.emplace_back("trainer.max_updates=3");
    const ProgramResult result =
        run_shell(std::string("\"$@\" ") + ending, folder_->train_arguments("mute", settings));
    EXPECT_EQ(result.exit_code, 0) << ending;
    EXPECT_EQ(folder_->records("mute").size(), 3U) << ending;  // throws at a line that isn't JSON
  }
}

}  // namespace
}  // namespace octavo
