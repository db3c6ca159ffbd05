// `octavo evaluate` as the user meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/file.h"
#include "core/version.h"
#include "tests/testkit/program.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testkit::ProgramResult;

class Evaluate : public testing::Test {
 protected:
  ProgramResult run(const std::string& references, const std::string& hypotheses,
                    std::vector<std::string> options = {}) {
    write_file(reference_, references);
    options.insert(options.begin(), {OCTAVO_PROGRAM, "evaluate", "--reference", reference_});
    return testkit::run_program(options, hypotheses);
  }
  void expect_error(const ProgramResult& result, const std::string& message) {
    EXPECT_EQ(2, result.exit_code);
    EXPECT_THAT(result.err, StartsWith("error: " + message));
    EXPECT_THAT(result.out, IsEmpty());
  }

  testkit::TempFolder folder_;
  std::string reference_ = folder_.path() / "ref.de";
};

TEST_F(Evaluate, PrintsSacrebleusLineAndWhatWasScored) {
  const std::string source = OCTAVO_SOURCE_DIR;
  const auto golden = nlohmann::json::parse(read_file(source + "/tests/golden/bleu_sample.json"));
  for (const auto& expected : golden["cases"]) {
    const std::string reference =
        source + "/tests/samples/libreoffice-help/dev." + expected["language"].get<std::string>();
    std::vector<std::string> options{"--tokenize", expected["tokenize"].get<std::string>()};
    if (expected["lowercase"].get<bool>()) options.emplace_back("--lowercase");
    const ProgramResult result =
        run(read_file(reference), read_file(reference + ".perturbed"), options);
    std::string line = expected["line"].get<std::string>();
    const std::string theirs = "version:" + golden["sacrebleu"].get<std::string>();
    line.replace(line.find(theirs), theirs.size(), "version:octavo-" + std::string(kVersion));
    EXPECT_EQ(line + "\n" + reference_ + ": 200 lines\n", result.out);
    EXPECT_EQ(0, result.exit_code);
    EXPECT_THAT(result.err, IsEmpty());
  }
}

TEST_F(Evaluate, LastLineMayLackItsEnd) {
  EXPECT_THAT(run("a b c d\nx", "a b c d\nx").out, HasSubstr(": 2 lines\n"));
  EXPECT_THAT(run("a b c d\r\nx\r\n", "a b c d\nx").out, StartsWith("BLEU|nrefs:1|"));
}

TEST_F(Evaluate, RefusesUnequalCountsAndNamesBoth) {
  const std::string start = "standard input (the hypotheses) has ";
  expect_error(run("a\nb\nc\n", "a\n"), start + "1 lines but " + reference_ + " has 3. ");
  expect_error(run("a\n", "a\nb\nc\nd"), start + "4 lines but " + reference_ + " has 1. ");
  expect_error(run("a\n", ""), start + "0 lines but " + reference_ + " has 1. ");
  expect_error(run("", ""), reference_ + " and standard input (the hypotheses) have no lines");
}

TEST_F(Evaluate, RefusesTextThatIsNotUtf8) {
  expect_error(run("a\nb\n", "a\nb\xfc\n"),
               "standard input (the hypotheses): line 2 is not UTF-8 at byte 2");
  expect_error(run("a\xfc\n", "a\n"), reference_ + ": line 1 is not UTF-8 at byte 2");
}

TEST_F(Evaluate, RefusesWrongOptions) {
  expect_error(run("a", "a", {"--tokenize", "13b"}),
               "--tokenize is '13b'; it must be one of 13a, intl, char, none; did you mean '13a'?");
  expect_error(testkit::run_program({OCTAVO_PROGRAM, "evaluate"}), "--reference is missing");
  expect_error(testkit::run_program({OCTAVO_PROGRAM, "evaluate", "--reference", "/no/such/file"}),
               "cannot open /no/such/file");
}

TEST_F(Evaluate, WarnsOfTokenizedText) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "a b c d .\n";
  const ProgramResult result = run(text, text);
  EXPECT_EQ(0, result.exit_code);
  EXPECT_THAT(result.err, HasSubstr("100 hypotheses end in ' .'"));
}

}  // namespace
}  // namespace octavo
