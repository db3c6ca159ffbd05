#include "trainer/averaging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "core/error.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"
#include "trainer/checkpoint.h"
#include "trainer/run_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testkit::message_of;
using testkit::TempFolder;

/// What the tests vary of a checkpoint.
struct Sample {
  std::vector<float> weights;
  std::string settings = "model:\n  heads: 4\n  dropout: 0.1\ntrainer:\n  seed: 1\n";
  std::string vocabulary = "a\nb\n";
  std::vector<float> ema = {};
  std::string weight_name = "w";
};

template <typename T>
NamedTensor tensor(const std::string& name, const std::vector<T>& values) {
  return {name,
          kDTypeOf<T>,
          {static_cast<std::int64_t>(values.size())},
          std::as_bytes(std::span(values))};
}

void save(const fs::path& path, const Sample& sample) {
  CheckpointContents contents;
  contents.tensors[std::string(kWeightsFile)] = {tensor(sample.weight_name, sample.weights)};
  contents.tensors[std::string(kOptimizerFile)] = {tensor("first.w", sample.weights)};
  if (!sample.ema.empty())
    contents.tensors[std::string(kEmaFile)] = {tensor(sample.weight_name, sample.ema)};
  contents.texts[std::string(kSettingsFile)] = sample.settings;
  contents.texts[std::string(kStateFile)] = to_json({});
  contents.texts["vocabulary.txt"] = sample.vocabulary;
  write_checkpoint(path, contents);
}

template <typename T>
std::vector<T> weights_of(const fs::path& path) {
  const SafetensorsFile file = Checkpoint(path).tensors(kWeightsFile);
  const auto bytes = file.bytes(file.entries().at(0));
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(Averaging, GivesTheMeansRoundedOnce) {
  const TempFolder folder;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 100);
  std::vector<double> sums(1000);
  std::vector<fs::path> paths;
  for (int k = 0; k < 7; ++k) {
    Sample sample;
    for (double& sum : sums) {
      sample.weights.push_back(normal(random));
      sum += static_cast<double>(sample.weights.back());
    }
    paths.push_back(folder / std::to_string(k));
    save(paths.back(), sample);
  }
  average_checkpoints(paths, folder / "mean");
  std::vector<float> expected;
  expected.reserve(sums.size());
  for (const double sum : sums) expected.push_back(static_cast<float>(sum / 7));
  EXPECT_EQ(expected, weights_of<float>(folder / "mean"));
}

TEST(Averaging, OfOneIsThatOne) {
  const TempFolder folder;
  save(folder / "a", {.weights = {1.1f, -0.0f, 3e-40f}});
  average_checkpoints(std::vector<fs::path>{folder / "a"}, folder / "mean");
  EXPECT_EQ(weights_of<float>(folder / "a"), weights_of<float>(folder / "mean"));
}

TEST(Averaging, KeepsFloat64) {
  const TempFolder folder;
  for (const double value : {0.1, 0.3}) {
    const std::vector<double> weights{value};
    CheckpointContents contents;
    contents.tensors[std::string(kWeightsFile)] = {tensor("w", weights)};
    contents.texts[std::string(kSettingsFile)] = "";
    write_checkpoint(folder / std::to_string(value), contents);
  }
  average_checkpoints(std::vector<fs::path>{folder / "0.100000", folder / "0.300000"},
                      folder / "mean");
  EXPECT_EQ((0.1 + 0.3) / 2, weights_of<double>(folder / "mean").at(0));
}

TEST(Averaging, MakesACheckpointThatTranslatesAndSaysWhatItIs) {
  const TempFolder folder;
  save(folder / "a", {.weights = {1}});
  // Dropout and the trainer's settings may differ.
  const std::string other = "model:\n  heads: 4\n  dropout: 0.3\ntrainer:\n  seed: 2\n";
  save(folder / "b", {.weights = {2}, .settings = other});
  average_checkpoints(std::vector<fs::path>{folder / "a", folder / "b"}, folder / "mean");
  const Checkpoint mean(folder / "mean");
  mean.verify();
  EXPECT_EQ(3u, mean.files().size());
  EXPECT_EQ(other, mean.text(kSettingsFile));
  EXPECT_EQ("a\nb\n", mean.text("vocabulary.txt"));
  EXPECT_THAT(mean.tensors(kWeightsFile).metadata().at("average of"),
              testing::AllOf(HasSubstr("/a/weights.safetensors, "), HasSubstr("/b/weights")));
  EXPECT_EQ(folder / "mean", find_checkpoint(folder / "mean"));
}

TEST(Averaging, TakesTheRunningAveragesWhereThereAreSome) {
  const TempFolder folder;
  save(folder / "a", {.weights = {1}, .ema = {10}});
  save(folder / "b", {.weights = {2}, .ema = {20}});
  save(folder / "c", {.weights = {3}});
  average_checkpoints(std::vector<fs::path>{folder / "a", folder / "b"}, folder / "mean");
  EXPECT_EQ(15, weights_of<float>(folder / "mean").at(0));
  EXPECT_FALSE(Checkpoint(folder / "mean").has(kEmaFile));
  EXPECT_THAT(
      message_of<UserError>([&] {
        average_checkpoints(std::vector<fs::path>{folder / "a", folder / "c"}, folder / "other");
      }),
      HasSubstr("only one of them has running averages"));
}

std::string refusal(const Sample& first, const Sample& second) {
  const TempFolder folder;
  save(folder / "a", first);
  save(folder / "b", second);
  std::string message = message_of<UserError>([&] {
    average_checkpoints(std::vector<fs::path>{folder / "a", folder / "b"}, folder / "mean");
  });
  EXPECT_FALSE(fs::exists(folder / "mean"));
  return message;
}

TEST(Averaging, RefusesWhatDoesNotBelongTogether) {
  const Sample good{.weights = {1, 2}};
  EXPECT_THAT(refusal(good, {.weights = {1, 2, 3}}),
              HasSubstr("w is f32 [2] in one and f32 [3] in the other"));
  EXPECT_THAT(refusal(good, {.weights = {1, 2}, .weight_name = "v"}),
              HasSubstr("only the first has w"));
  EXPECT_THAT(refusal(good, {.weights = {1, 2}, .vocabulary = "a\nc\n"}),
              HasSubstr("their vocabulary.txt differ"));
  EXPECT_THAT(refusal(good, {.weights = {1, 2}, .settings = "model:\n  heads: 8\n  dropout: 0\n"}),
              HasSubstr("model.heads differs"));
  EXPECT_THAT(refusal(good, {.weights = {1, 2}, .settings = "model:\n  heads: 4\n"}),
              HasSubstr("model differs"));
  EXPECT_THAT(refusal(good, {.weights = {1, NAN}}), HasSubstr("not finite"));
  EXPECT_THAT(refusal({.weights = {INFINITY, 1}}, good), HasSubstr("a/weights.safetensors has"));
}

TEST(Averaging, RefusesTheSameTwiceAndWhatIsThere) {
  const TempFolder folder;
  save(folder / "a", {.weights = {1}});
  save(folder / "b", {.weights = {2}});
  fs::create_directory_symlink(folder / "a", folder / "link");
  const auto refused = [&](const std::vector<fs::path>& paths, const fs::path& output) {
    return message_of<UserError>([&] { average_checkpoints(paths, output); });
  };
  EXPECT_THAT(refused({folder / "a", folder / "b", folder / "link"}, folder / "mean"),
              HasSubstr("they are the same"));
  EXPECT_THAT(refused({folder / "a"}, folder / "b"), HasSubstr("b is there already"));
  EXPECT_THAT(refused({folder / "a", folder / "none"}, folder / "mean"), HasSubstr("none"));
  EXPECT_EQ(2, weights_of<float>(folder / "b").at(0));
}

TEST(Averaging, FindsTheLastCheckpointsOfARun) {
  const TempFolder run;
  fs::create_directory(checkpoints_folder(run.path()));
  for (const std::int64_t update : {10, 9, 100})
    save(checkpoint_folder(run.path(), update), {.weights = {1}});
  EXPECT_THAT(
      last_checkpoints(run.path(), 2),
      testing::ElementsAre(checkpoint_folder(run.path(), 10), checkpoint_folder(run.path(), 100)));
  EXPECT_EQ(3u, last_checkpoints(run.path(), 3).size());
  EXPECT_THAT(message_of<UserError>([&] { last_checkpoints(run.path(), 4); }),
              HasSubstr("has 3 checkpoints; 4 can't be averaged"));
  EXPECT_THAT(message_of<UserError>([&] { last_checkpoints(run / "none", 1); }),
              HasSubstr("there is no run "));
}

}  // namespace
}  // namespace octavo
