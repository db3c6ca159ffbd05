// octavo average and octavo inspect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/file.h"
#include "data/corpus.h"
#include "data/manifest.h"
#include "tests/testkit/program.h"
#include "tests/testkit/temp_folder.h"
#include "trainer/checkpoint.h"
#include "trainer/run_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testkit::ProgramResult;
using testkit::TempFolder;

ProgramResult octavo(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), OCTAVO_PROGRAM);
  return testkit::run_program(arguments);
}

void save(const fs::path& run, std::int64_t update, float value) {
  fs::create_directories(checkpoints_folder(run));
  const std::vector<float> weights(6, value);
  CheckpointContents contents;
  contents.tensors[std::string(kWeightsFile)] = {
      {"layer.weight", DType::f32, {2, 3}, std::as_bytes(std::span(weights))}};
  contents.texts[std::string(kSettingsFile)] = "model:\n  width: 3\n";
  contents.texts[std::string(kStateFile)] =
      to_json({.update = update, .seconds = 75, .best_score = 12.5, .hashes = {{"data", "abc"}}});
  write_checkpoint(checkpoint_folder(run, update), contents);
}

TEST(AverageCommand, AveragesTheLastOrTheNamedCheckpoints) {
  const TempFolder run;
  for (const std::int64_t update : {1, 2, 3}) save(run.path(), update, static_cast<float>(update));
  const ProgramResult last =
      octavo({"average", run.path(), "--last", "2", "--output", run / "mean"});
  EXPECT_EQ(0, last.exit_code) << last.err;
  EXPECT_THAT(last.err, AllOf(HasSubstr("averaging"), HasSubstr("step_00000002/weights"),
                              HasSubstr("step_00000003/weights")));
  EXPECT_EQ("", last.out);
  const SafetensorsFile mean = Checkpoint(run / "mean").tensors(kWeightsFile);
  float first = 0;
  std::memcpy(&first, mean.bytes(mean.entries().at(0)).data(), sizeof first);
  EXPECT_EQ(2.5f, first);
  const ProgramResult named =
      octavo({"average", "--output", run / "named", checkpoint_folder(run.path(), 1),
              checkpoint_folder(run.path(), 3)});
  EXPECT_EQ(0, named.exit_code) << named.err;
}

TEST(AverageCommand, RefusesWhatMakesNoSense) {
  const TempFolder run;
  save(run.path(), 1, 1);
  const auto refusal = [&](const std::vector<std::string>& arguments) {
    const ProgramResult result = octavo(arguments);
    EXPECT_EQ(2, result.exit_code);
    return result.err;
  };
  const std::string output = run / "mean";
  EXPECT_THAT(refusal({"average", "--output", output}), HasSubstr("RUN|CHECKPOINT... is missing"));
  EXPECT_THAT(refusal({"average", run.path()}), HasSubstr("output is missing"));
  EXPECT_THAT(refusal({"average", run.path(), "--last", "2", "--output", output}),
              HasSubstr("has 1 checkpoint;"));
  EXPECT_THAT(refusal({"average", run.path(), "--last", "0", "--output", output}),
              HasSubstr("at least 1"));
  EXPECT_THAT(refusal({"average", "a", "b", "--last", "1", "--output", output}),
              HasSubstr("give one run"));
  EXPECT_THAT(refusal({"average", run.path(), "--output", output}), HasSubstr("with --last N"));
  EXPECT_THAT(refusal({"average", checkpoint_folder(run.path(), 1), "--output",
                       run / "checkpoints" / "mean"}),
              HasSubstr("among a run's own checkpoints"));
}

TEST(InspectCommand, ShowsACheckpoint) {
  const TempFolder run;
  save(run.path(), 1234, 1);
  const ProgramResult result = octavo({"inspect", run.path()});
  EXPECT_EQ(0, result.exit_code) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("step_00001234"), HasSubstr("update 1,234"), HasSubstr("1m15s"),
                    HasSubstr("layer.weight  f32            [2, 3]              6"),
                    HasSubstr("6 numbers in 1 tensors"), HasSubstr("  width: 3"),
                    HasSubstr("abc  data"), HasSubstr("12.5000"), HasSubstr("state.json")));
}

TEST(InspectCommand, FindsDamage) {
  const TempFolder run;
  save(run.path(), 1, 1);
  const fs::path file = checkpoint_folder(run.path(), 1) / kWeightsFile;
  std::string bytes = read_file(file);
  bytes.back() ^= 1;
  write_file(file, bytes);
  const ProgramResult result = octavo({"inspect", checkpoint_folder(run.path(), 1)});
  EXPECT_EQ(2, result.exit_code);
  EXPECT_THAT(result.err, HasSubstr("weights.safetensors has other content"));
}

TEST(InspectCommand, ShowsACorpus) {
  const TempFolder folder;
  CorpusWriter writer(folder / "x", {{"source", ColumnType::tokens16}});
  const std::vector<std::int32_t> ids{5, 6, 7};
  writer.set_tokens(0, ids);
  writer.end_row();
  writer.set_tokens(0, {});
  writer.end_row();
  writer.commit({{"made", "by a test"}});
  const ProgramResult result = octavo({"inspect", folder / "x"});
  EXPECT_EQ(0, result.exit_code) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("2 rows"), HasSubstr("3 ids of 16 bits"),
                                HasSubstr("1.50 a row"), HasSubstr("made: by a test")));
}

TEST(InspectCommand, ShowsAPreparedFolder) {
  const TempFolder folder;
  write_manifest(
      folder.path(),
      {{"train.0",
        {.settings = {{"data.max_length", "256"}},
         .inputs = {},
         .outputs = {{"train.0.corpus", "0123456789abcdef"}},
         .counts = {
             .lines = 7, .kept = 6, .source_tokens = 1, .target_tokens = 1, .dropped = {}}}}});
  const ProgramResult result = octavo({"inspect", folder.path()});
  EXPECT_EQ(0, result.exit_code) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("train.0: 7 pairs, 6 kept"), HasSubstr("data.max_length = 256"),
                    HasSubstr("0123456789abcdef  train.0.corpus")));
}

TEST(InspectCommand, ShowsSettingsWithTheirDefaults) {
  const TempFolder folder;
  const ProgramResult result = octavo({"inspect", OCTAVO_SOURCE_DIR "/configs/reverse.yaml"});
  EXPECT_EQ(0, result.exit_code) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("\n    beta1: 0.9"), HasSubstr("\ntrainer:")));
  const ProgramResult wrong = octavo(
      {"inspect",
       folder.write("a.yaml", "trainer: {output: x, max_updates: 1}\nmodell: {width: 8}\n")});
  EXPECT_EQ(2, wrong.exit_code);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean 'model'?"));
}

TEST(InspectCommand, ShowsTensorsAndRefusesTheRest) {
  const TempFolder folder;
  const ProgramResult tensors =
      octavo({"inspect", OCTAVO_SOURCE_DIR "/tests/golden/safetensors.safetensors"});
  EXPECT_EQ(0, tensors.exit_code);
  EXPECT_THAT(tensors.out, HasSubstr("bf16              [3]"));
  for (const fs::path& path : {folder / "none", folder.path(), folder.write("a.txt", "text")}) {
    const ProgramResult result = octavo({"inspect", path});
    EXPECT_EQ(2, result.exit_code);
    EXPECT_THAT(result.err, HasSubstr(path.string()));
  }
}

}  // namespace
}  // namespace octavo
