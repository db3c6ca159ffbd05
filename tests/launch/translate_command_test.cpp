// octavo translate and octavo score on a checkpoint with random weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/lines.h"
#include "core/settings.h"
#include "data/subword_training.h"
#include "data/subwords.h"
#include "model/transformer.h"
#include "tests/testkit/program.h"
#include "tests/testkit/temp_folder.h"
#include "trainer/checkpoint.h"
#include "trainer/parameter_files.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using testkit::ProgramResult;
using testkit::TempFolder;

struct ModelSettings {
  ModelConfig model;

  template <typename Visitor>
  void describe(Visitor& v) {
    v.section("model", model, "shape of the Transformer");
  }
};

const std::string& subword_file() {
  static const std::string file =
      train_subwords({.kind = SubwordKind::bpe, .vocabulary_size = 500, .character_coverage = 0.99},
                     read_lines(std::filesystem::path(OCTAVO_SOURCE_DIR) /
                                "tests/samples/libreoffice-help/dev.en"));
  return file;
}

/// Writes a checkpoint of a small model with weights drawn from `seed`, and averages from
/// `ema_seed` unless it is 0.
void write_model(const std::filesystem::path& folder, std::uint64_t seed,
                 std::uint64_t ema_seed = 0) {
  ModelSettings settings;
  settings.model.width = 16;
  settings.model.hidden = 16;
  settings.model.heads = 2;
  settings.model.encoder_layers = settings.model.decoder_layers = 1;
  settings.model.max_positions = 48;
  const std::int64_t vocabulary = Subwords(subword_file(), "x").vocabulary().size();
  const Transformer model(settings.model, vocabulary, vocabulary);
  Context ctx(Device::cpu, 1, 0);
  Parameters weights(model.table(), ctx, DType::f32, false);
  Parameters average(model.table(), ctx, DType::f32, false);
  weights.initialise(ctx, seed);
  average.initialise(ctx, ema_seed);
  CheckpointContents contents;
  contents.tensors[std::string(kWeightsFile)] =
      stored_tensors(model.table(), weights.flat_master());
  if (ema_seed != 0) {
    contents.tensors[std::string(kEmaFile)] = stored_tensors(model.table(), average.flat_master());
  }
  contents.texts[std::string(kSettingsFile)] = resolved_yaml(settings);
  contents.texts["subwords.model"] = subword_file();
  write_checkpoint(folder, contents);
}

/// Runs the program in a shell with one thread; `more` may redirect.
ProgramResult octavo(const std::string& command, const std::string& more) {
  return testkit::run_shell(std::string(OCTAVO_PROGRAM) + " " + command + " --threads 1 " + more);
}

std::vector<std::string> lines_of(const TempFolder& folder, const std::string& text) {
  return read_lines(folder.write("lines", text));
}

class ModelCommand : public ::testing::Test {
 protected:
  ModelCommand() { write_model(model(), 1); }
  std::string model() const { return folder_ / "model"; }
  std::string file(const std::string& name, const std::string& text) const {
    return folder_.write(name, text).string();
  }
  TempFolder folder_;
};

TEST_F(ModelCommand, TranslatesLineByLine) {
  std::string text = "Open the file.\n\n \nb\xFFz\r\n";
  text += std::string(1, '\0') + "\u2028\n" + std::string(3000, 'x') + "\nlast";
  const ProgramResult result =
      octavo("translate " + model() + " --beam 2", "< " + file("in", text));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> lines = lines_of(folder_, result.out);
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines[1], "");
  EXPECT_NE(lines[6], "");
  for (const std::string& line : lines) EXPECT_TRUE(is_valid_utf8(line));
  EXPECT_THAT(result.err, HasSubstr("preset transformer, beam 2, length penalty 0.6"));
  EXPECT_THAT(result.err, HasSubstr("line 4: ill-formed UTF-8 at byte 2"));
  EXPECT_THAT(result.err, HasSubstr("7 lines in"));
  EXPECT_THAT(result.err, HasSubstr("1 line had too many tokens: split"));
}

TEST_F(ModelCommand, TranslatesNothing) {
  const ProgramResult result = octavo("translate " + model(), "< /dev/null");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST_F(ModelCommand, PrintsNBestLists) {
  const ProgramResult result = octavo("translate " + model() + " --preset fairseq --nbest 3",
                                      "< " + file("in", "Open the file.\nClose it.\n"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> lines = lines_of(folder_, result.out);
  ASSERT_EQ(lines.size(), 6u);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_THAT(lines[i], MatchesRegex(std::to_string(i / 3) + " \\|\\|\\| .* \\|\\|\\| -[0-9.]+"));
  }
}

TEST_F(ModelCommand, RefusesLongLinesIfTold) {
  const ProgramResult result = octavo("translate " + model() + " --long-lines refuse",
                                      "< " + file("in", "a\n" + std::string(999, 'x') + "\n"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("error: line 2: it has "));
  const ProgramResult tiny =
      octavo("translate " + model() + " --max-source 3", "< " + file("in", "a\n"));
  EXPECT_EQ(tiny.exit_code, 2);
  EXPECT_THAT(tiny.err, HasSubstr("--long-lines refuse"));
}

TEST_F(ModelCommand, TranslatesWithTheRunningAverage) {
  const std::string input = file("in", "Open the file and close it.\nPrint.\n");
  write_model(folder_ / "averaged", 1, 2);
  write_model(folder_ / "other", 2);
  const auto translation = [&](const std::string& name) {
    return octavo("translate " + (folder_ / name).string(), "< " + input).out;
  };
  EXPECT_EQ(translation("averaged"), translation("other"));
  EXPECT_NE(translation("averaged"), translation("model"));
}

TEST_F(ModelCommand, ScoresPairs) {
  const std::string source = file("s", "Open the file.\n\nPrint.\n");
  const std::string target = file("t", "Close the window.\nx\n\n");
  const std::string paths = " --source " + source + " --target " + target;
  const ProgramResult result = octavo("score " + model() + paths, "");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> lines = lines_of(folder_, result.out);
  ASSERT_EQ(lines.size(), 3u);
  for (const std::string& line : lines) EXPECT_LT(std::stod(line), 0);
  EXPECT_LT(std::stod(lines[0]), std::stod(lines[2]));  // EOS alone is likelier than many tokens
  EXPECT_THAT(result.err, HasSubstr("3 pairs, "));
  const ProgramResult small = octavo("score " + model() + paths + " --batch-tokens 1", "");
  const std::vector<std::string> apart = lines_of(folder_, small.out);
  ASSERT_EQ(apart.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(std::stod(apart[i]), std::stod(lines[i]), 1e-3);
}

TEST_F(ModelCommand, RefusesUnequalTexts) {
  const ProgramResult result = octavo(
      "score " + model() + " --source " + file("s", "a\nb\n") + " --target " + file("t", "a\n"),
      "");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("s has 2 lines but "));
  EXPECT_EQ(octavo("score " + model() + " --source - --target -", "< /dev/null").exit_code, 2);
}

TEST_F(ModelCommand, RefusesDamagedModels) {
  for (const char* name : {"weights.safetensors", "subwords.model", "settings.yaml"}) {
    write_model(model(), 1);
    std::string bytes = read_file(model() + "/" + name);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    write_file(model() + "/" + name, bytes);
    const ProgramResult result = octavo("translate " + model(), "< /dev/null");
    EXPECT_EQ(result.exit_code, 2) << name;
    EXPECT_THAT(result.err, HasSubstr(name));
  }
  EXPECT_EQ(octavo("translate " + (folder_ / "none").string(), "< /dev/null").exit_code, 2);
}

}  // namespace
}  // namespace octavo
