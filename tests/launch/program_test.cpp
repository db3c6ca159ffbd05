// The program as the user meets it: help, mistakes, exit codes, pipes.
#include "tests/testkit/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::StartsWith;
using testkit::ProgramResult;

ProgramResult octavo(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), OCTAVO_PROGRAM);
  return testkit::run_program(arguments);
}

void expect_mistake(const ProgramResult& result, const std::string& message) {
  EXPECT_EQ(2, result.exit_code);
  EXPECT_EQ("error: " + message + "\n", result.err);
  EXPECT_THAT(result.out, IsEmpty());
}

TEST(Program, TellsItsCommands) {
  for (const char* option : {"--help", "-h"}) {
    const ProgramResult result = octavo({option});
    EXPECT_EQ(0, result.exit_code);
    EXPECT_THAT(result.out, HasSubstr("usage: octavo COMMAND"));
    EXPECT_THAT(result.out, ContainsRegex("\n  settings +list every setting"));
    EXPECT_THAT(result.err, IsEmpty());
  }
}

TEST(Program, TellsItsVersion) {
  const ProgramResult result = octavo({"--version"});
  EXPECT_EQ(0, result.exit_code);
  EXPECT_THAT(result.out, MatchesRegex("octavo [0-9]+\\.[0-9]+\\.[0-9]+ \\([0-9a-z -]+\\)\n"));
}

// libgomp shows what it has read when it was loaded.
TEST(Program, LetsThreadsSleepAtBarriersUnlessToldOtherwise) {
  setenv("OMP_DISPLAY_ENV", "verbose", 1);
  EXPECT_THAT(octavo({"--version"}).err, HasSubstr("GOMP_SPINCOUNT = '1000'"));
  setenv("GOMP_SPINCOUNT", "77", 1);
  const std::string told = octavo({"--version"}).err;
  unsetenv("GOMP_SPINCOUNT");
  unsetenv("OMP_DISPLAY_ENV");
  EXPECT_THAT(told, HasSubstr("GOMP_SPINCOUNT = '77'"));
  EXPECT_EQ(told.find("1000'"), std::string::npos) << told;
}

TEST(Program, TellsACommandsOptions) {
  const ProgramResult result = octavo({"settings", "--help"});
  EXPECT_EQ(0, result.exit_code);
  EXPECT_THAT(result.out, StartsWith("usage: octavo settings [NAME]\n"));
  EXPECT_THAT(result.out, HasSubstr("\n  NAME    only this section"));
  EXPECT_THAT(result.out, HasSubstr("\n  --help  this text\n"));
}

TEST(Program, GuessesWhatAMistakeMeant) {
  expect_mistake(octavo({"setings"}),
                 "no command 'setings'; did you mean 'settings'? 'octavo --help' lists them.");
  expect_mistake(octavo({"dance"}), "no command 'dance'; 'octavo --help' lists them.");
  expect_mistake(octavo({}), "no command given; 'octavo --help' lists them");
  expect_mistake(octavo({"settings", "--hepl"}),
                 "no option '--hepl'; did you mean '--help'? 'octavo settings --help' lists them.");
  expect_mistake(octavo({"settings", "model", "extra"}),
                 "unexpected argument 'extra'; usage: octavo settings [NAME]");
  expect_mistake(octavo({"settings", "modle"}),
                 "no setting or section 'modle'; did you mean 'model'?");
}

TEST(Program, TakesNoAbbreviations) {
  EXPECT_EQ(2, octavo({"settings", "--hel"}).exit_code);
  EXPECT_EQ(2, octavo({"setting"}).exit_code);
}

TEST(Program, ListsSettings) {
  const ProgramResult all = octavo({"settings"});
  EXPECT_EQ(0, all.exit_code);
  EXPECT_THAT(all.out, HasSubstr("model.width = 512\n"));
  const ProgramResult one = octavo({"settings", "model.width"});
  EXPECT_EQ(0, one.exit_code);
  EXPECT_THAT(one.out, StartsWith("model.width = 512\n"));
  EXPECT_THAT(one.out, testing::Not(HasSubstr("model.heads")));
}

TEST(Program, EndsBySigpipeWhenTheReaderLeaves) {
  // The reader has gone before the first byte: it is `exit` itself.
  const std::string program = OCTAVO_PROGRAM;
  const ProgramResult result =
      testkit::run_shell("{ sleep 0.2; " + program + " settings; echo $? >&2; } | exit 0");
  EXPECT_EQ("141\n", result.err);
}

TEST(Program, RefusesAFullDiskBehindItsOutput) {
  const std::string program = OCTAVO_PROGRAM;
  const ProgramResult result = testkit::run_shell(program + " settings > /dev/full");
  EXPECT_EQ(2, result.exit_code);
  EXPECT_EQ("error: cannot write standard output: No space left on device\n", result.err);
}

}  // namespace
}  // namespace octavo
