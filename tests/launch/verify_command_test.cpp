// `octavo verify`: a run, and what lies here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testkit/program.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using testkit::ProgramResult;

class Verify : public testing::Test {
 protected:
  void SetUp() override {
    write_text("");
    config_ = folder_.write(
        "x.yaml",
        "data: {prepared: " + path("prepared") +
            ", subwords: {vocabulary_size: 300}, train: [{source: " + path("a.en") +
            ", target: " + path("a.de") +
            "}]}\n"
            "model: {width: 8, hidden: 8, heads: 1, encoder_layers: 1, decoder_layers: 1}\n"
            "trainer: {output: " +
            path("run") + ", tokens_per_update: 100, max_updates: 2}\n");
    ASSERT_EQ(0, octavo({"prepare", config_}).exit_code);
    const ProgramResult train = octavo({"train", config_, "--threads", "1"});
    ASSERT_EQ(0, train.exit_code) << train.err;
  }
  void write_text(const std::string& more) {
    std::string text;
    for (int i = 0; i < 100; ++i) text += "line number " + std::to_string(i) + "\n";
    folder_.write("a.en", text + more);
    folder_.write("a.de", text + more);
  }
  std::string path(const std::string& name) { return folder_ / name; }
  static ProgramResult octavo(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), OCTAVO_PROGRAM);
    return testkit::run_program(arguments);
  }
  testkit::TempFolder folder_;
  std::string config_;
};

TEST_F(Verify, FindsNothingWhereARunWasMade) {
  const ProgramResult result = octavo({"verify", path("run")});
  EXPECT_EQ(0, result.exit_code) << result.err;
  EXPECT_THAT(result.out, HasSubstr("recipe.lock: 1 start\n"));
  EXPECT_THAT(result.out, HasSubstr("\ndata: the same (6)\n"));
  EXPECT_THAT(result.out, HasSubstr("\nprogram: the same (6)\nsettings: the same ("));
  // The lock alone, with settings of its reader, whose files lie elsewhere.
  std::filesystem::rename(path("prepared"), path("elsewhere"));
  const ProgramResult alone = octavo({"verify", path("run/recipe.lock"), "--config", config_,
                                      "--set", "data.prepared=" + path("elsewhere")});
  EXPECT_EQ(0, alone.exit_code) << alone.out << alone.err;
}

TEST_F(Verify, SaysWhatDiffers) {
  write_text("one more\n");
  const ProgramResult result = octavo({"verify", path("run"), "--set", "trainer.seed=7"});
  EXPECT_EQ(1, result.exit_code);
  EXPECT_THAT(result.out, HasSubstr("\n  trainer.seed\n    recipe  1\n    here    7\n"));
  EXPECT_THAT(result.out, HasSubstr("\ndata: 2 of 6 differ\n  train.0.source\n    recipe  "));
  EXPECT_THAT(result.out, HasSubstr(" (101 lines)\n"));
}

TEST_F(Verify, TellsHowARunWentOn) {
  const ProgramResult train =
      octavo({"train", config_, "--threads", "1", "--set", "trainer.max_updates=3"});
  ASSERT_EQ(0, train.exit_code) << train.err;
  const ProgramResult result = octavo({"verify", path("run")});
  EXPECT_EQ(0, result.exit_code);
  EXPECT_THAT(result.out, HasSubstr("recipe.lock: 2 starts\n  went on after update 2 with "
                                    "trainer.max_updates = 3 (2 before)\n"));
}

TEST_F(Verify, ExplainsMistakes) {
  const ProgramResult none = octavo({"verify", path("prepared")});
  EXPECT_EQ(2, none.exit_code);
  EXPECT_THAT(none.err, HasSubstr("has no recipe.lock"));
  const ProgramResult alone = octavo({"verify", path("run/recipe.lock")});
  EXPECT_EQ(2, alone.exit_code);
  EXPECT_THAT(alone.err, HasSubstr("--config CONFIG"));
}

}  // namespace
}  // namespace octavo
