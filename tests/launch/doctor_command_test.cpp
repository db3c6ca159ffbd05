// `octavo doctor` as the user meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/file.h"
#include "tests/testkit/program.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using testkit::ProgramResult;

class DoctorCommand : public testing::Test {
 protected:
  ProgramResult run(std::vector<std::string> options) {
    options.insert(options.begin(), {OCTAVO_PROGRAM, "doctor"});
    return testkit::run_program(options);
  }
  std::string write(const std::string& name, std::string_view text) {
    return folder_.write(name, text).string();
  }
  testkit::TempFolder folder_;
};

TEST_F(DoctorCommand, ReportsAndCleans) {
  const std::string source = write("c.en", "Hello there\n\nfÃ¼r\nHello there\nIn the test\n"),
                    target = write("c.de", "Hallo dort\nleer\ndrei\nHallo dort\nIm Test\n"),
                    test = write("t.de", "Im Test!\n"), out = folder_ / "out";
  const ProgramResult result = run({source, target, "--test", test, "--fix", out});
  EXPECT_EQ(0, result.exit_code);
  EXPECT_EQ(
      source + ": 5 lines, most of them in Latin letters\n" + target +
          ": 5 lines, most of them in Latin letters\n"
          "  empty                     source             1  line 2\n"
          "  double-encoded            source             1  line 3\n"
          "  duplicates                pair               1  line 4\n"
          "  nearly in the test set    pair               1  line 5\n"
          "none: invalid UTF-8, control characters, line separators, not in NFC, other script, "
          "copies (source = target), out of ratio, too long, in the test set\n" +
          out + ": 2 pairs kept, 1 of them changed; 3 dropped (doctor.jsonl)\n",
      result.out);
  EXPECT_EQ("", result.err);
  EXPECT_EQ("Hello there\nfür\n", read_file(out + "/c.en"));
  EXPECT_EQ("Hallo dort\ndrei\n", read_file(out + "/c.de"));
}

TEST_F(DoctorCommand, TellsOfUnequalFiles) {
  const std::string source = write("c.en", "a\nb\nc\n"), target = write("c.de", "x\ny\n");
  const ProgramResult result = run({source, target});
  EXPECT_EQ(0, result.exit_code);
  EXPECT_THAT(result.out, HasSubstr("unequal: lines from 3 on have no partner"));
  const ProgramResult fix = run({source, target, "--fix", folder_ / "out"});
  EXPECT_EQ(2, fix.exit_code);
  EXPECT_THAT(fix.err, HasSubstr("has 3 lines but"));
}

TEST_F(DoctorCommand, ExplainsMistakes) {
  const std::string text = write("a", "a\n");
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{text}, "octavo doctor SOURCE TARGET"},
      {{text, text, text}, "octavo doctor SOURCE TARGET"},
      {{text, folder_ / "missing"}, "No such file"},
      {{text, "-"}, "can't be standard input"},
      {{text, text, "--max-length", "0"}, "--max-length"},
      {{text, text, "--max-ratio", "0.5"}, "--max-ratio"},
      {{text, text, "--fix", folder_ / "out"}, "give them different names"},
      {{text, write("b", "b\n"), "--fix", text + "/x"}, "Not a directory"}};
  for (const auto& [options, message] : mistakes) {
    const ProgramResult result = run(options);
    EXPECT_EQ(2, result.exit_code) << message;
    EXPECT_THAT(result.err, HasSubstr(message));
  }
}

}  // namespace
}  // namespace octavo
