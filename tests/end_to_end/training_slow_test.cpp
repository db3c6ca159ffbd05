// What a training does besides the plain loop, through the program: fine-tuning, stopping early,
// averages of weights, gradients that are not finite, batches that memory allows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/file.h"
#include "tests/comm/ranks.h"
#include "tests/end_to_end/experiment_folder.h"
#include "tests/end_to_end/same_training.h"
#include "trainer/run_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testkit::ExperimentFolder;
using testkit::occurrences;
using testkit::ProgramResult;
using testkit::UpdateRecord;

using Settings = std::vector<std::string>;

class Training : public testkit::ExperimentTest {
 protected:
  static fs::path run_folder(const std::string& run) { return folder_->path(run); }

  static std::string file_of(const std::string& run, std::int64_t update, const std::string& name) {
    return read_file(checkpoint_folder(run_folder(run), update) / name);
  }

  /// -log p of every validation of a run, by update.
  static std::map<std::int64_t, double> validations(const std::string& run) {
    std::map<std::int64_t, double> found;
    std::istringstream lines(read_file(run_folder(run) / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto record = nlohmann::json::parse(line);
      if (record.at("kind") == "validation") found[record.at("update")] = record.at("nll");
    }
    return found;
  }

  /// -log p of data.dev according to octavo score, over all its tokens.
  static double score(const std::string& run, std::int64_t update) {
    const ProgramResult scored = ExperimentFolder::octavo(
        {"score", checkpoint_folder(run_folder(run), update).string(), "--source",
         folder_->path("dev.source"), "--target", folder_->path("dev.target")});
    EXPECT_EQ(scored.exit_code, 0) << scored.err;
    std::istringstream numbers(scored.out);
    double sum = 0;
    for (double p = 0; numbers >> p;) sum -= p;
    return sum;
  }
};

const Settings kValidatesByLoss{"trainer.validation.metric=nll",
                                "trainer.validation.bleu_sentences=0"};

Settings operator+(Settings a, const Settings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_F(Training, StartsFromOtherWeightsWithANewCorpus) {
  const ProgramResult base = folder_->train("base", {"trainer.max_updates=60"});
  ASSERT_EQ(base.exit_code, 0) << base.err;
  const std::string model = folder_->path("prepared/subwords.model");
  const std::string fine = folder_->other_experiment("fine", 7, "model: " + model);
  const std::string alien = folder_->other_experiment("alien", 8, "vocabulary_size: 400");

  const Settings settings{"trainer.init_from=" + folder_->path("base"), "trainer.max_updates=6",
                          "model.max_positions=200"};  // more than the base had
  const ProgramResult tuned = folder_->train("tuned", settings, 1, fine);
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(tuned.err, HasSubstr("[trainer] starts with the weights of " +
                                   checkpoint_folder(run_folder("base"), 60).string()));
  // The same kind of text: it goes on where the base ended, not at the loss of random weights.
  const std::vector<UpdateRecord> before = folder_->records("base");
  const std::vector<UpdateRecord> after = folder_->records("tuned");
  ASSERT_EQ(after.size(), 6U);
  EXPECT_LT(after.front().loss, before[before.size() / 2].loss);
  // Started again it goes on from its own checkpoint.
  const ProgramResult again =
      folder_->train("tuned", Settings{settings[0], settings[2], "trainer.max_updates=7"}, 1, fine);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, Not(HasSubstr("starts with the weights")));

  // As many pieces, but others: the shapes would fit.
  const ProgramResult refused = folder_->train("refused", settings, 1, alien);
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("trainer.init_from: "));
  EXPECT_THAT(refused.err,
              HasSubstr("was made with another vocabulary: its subwords.vocab differs"));
  // Weights of the same shapes, that would be cut into heads differently.
  const ProgramResult heads =
      folder_->train("heads", settings + Settings{"model.heads=1"}, 1, fine);
  EXPECT_EQ(heads.exit_code, 2) << heads.err;
  EXPECT_THAT(heads.err, HasSubstr("was trained with another model.head"));
  // And the same run on other text is no resumption.
  const ProgramResult changed = folder_->train("base", {"trainer.max_updates=61"}, 1, fine);
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_THAT(changed.err, HasSubstr("data"));
}

// A schedule by time must not jump over updates while validation runs.
TEST_F(Training, ValidationIsNoTimeOfTraining) {
  const Settings settings{"trainer.max_updates=2", "trainer.report_every=1",
                          "trainer.validation.every_updates=1",
                          "trainer.validation.bleu_sentences=4"};
  const ProgramResult result = folder_->train("timed", settings);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::map<std::string, std::vector<double>> seconds;
  std::istringstream lines(read_file(run_folder("timed") / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line);
    seconds[record.at("kind")].push_back(record.at("seconds"));
  }
  ASSERT_EQ(seconds["validation"].size(), 2U);
  EXPECT_EQ(seconds["validation"], seconds["train"]);
}

// Weights that a rate of 1e-30 moves nowhere: only the first validation is a gain.
TEST_F(Training, StopsEarlyAndStaysSo) {
  const Settings settings = kValidatesByLoss + Settings{"trainer.schedule.kind=constant",
                                                        "trainer.schedule.peak_rate=1e-30",
                                                        "trainer.schedule.warmup_updates=0",
                                                        "trainer.validation.every_updates=2"};
  const Settings two = settings + Settings{"trainer.validation.patience=2"};
  const ProgramResult first = folder_->train_ranks("early", two, 2);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err,
              HasSubstr("[trainer] stopped early: validation gets no better: 6 updates"));
  EXPECT_EQ(validations("early").size(), 3U);
  EXPECT_EQ(read_best(run_folder("early"))->update, 2);

  const ProgramResult again = folder_->train_ranks("early", two, 2);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err,
              HasSubstr("[trainer] stopped early: validation gets no better: 6 updates"));
  EXPECT_THAT(again.err, Not(HasSubstr("[validation]")));
  const ProgramResult patient =
      folder_->train_ranks("early", settings + Settings{"trainer.validation.patience=3"}, 2);
  EXPECT_THAT(patient.err, HasSubstr("stopped early: validation gets no better: 8 updates"));
}

// Scores of two metrics, or of two texts, are not on one scale.
TEST_F(Training, AnotherValidationStartsTheBestAnew) {
  const Settings settings{"trainer.validation.every_updates=1",
                          "trainer.validation.bleu_sentences=4"};
  const auto train = [&](const std::string& updates, const Settings& more) {
    const ProgramResult result =
        folder_->train("other", settings + more + Settings{"trainer.max_updates=" + updates});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.err;
  };
  train("1", {"trainer.validation.metric=nll"});
  EXPECT_EQ(read_best(run_folder("other"))->metric, "nll");
  EXPECT_THAT(train("2", {"trainer.validation.metric=nll"}), Not(HasSubstr("starts anew")));
  const std::string said = train("3", {"trainer.validation.metric=bleu"});
  EXPECT_THAT(said, HasSubstr("the best so far starts anew"));
  EXPECT_THAT(said, HasSubstr("of 4 lines, the best so far"));
  EXPECT_EQ(read_best(run_folder("other"))->metric, "bleu");
  EXPECT_EQ(read_best(run_folder("other"))->update, 3);
  EXPECT_THAT(train("4", {"trainer.validation.metric=bleu", "translate.beam=2"}),
              HasSubstr("the best so far starts anew"));
}

TEST_F(Training, AveragesAreValidatedSelectedAndTranslatedFrom) {
  // A rate so high that the average is far from the weights.
  const Settings settings = kValidatesByLoss + Settings{"trainer.max_updates=24",
                                                        "trainer.validation.every_updates=4",
                                                        "trainer.checkpoints.every_updates=4",
                                                        "trainer.checkpoints.keep_last=9",
                                                        "trainer.schedule.peak_rate=0.05",
                                                        "trainer.schedule.kind=constant",
                                                        "trainer.schedule.warmup_updates=0"};
  ASSERT_EQ(folder_->train("plain", settings).exit_code, 0);
  const ProgramResult averaged =
      folder_->train("averaged", settings + Settings{"trainer.average_decay=0.99"});
  ASSERT_EQ(averaged.exit_code, 0) << averaged.err;

  // The average leaves training alone. The files hold both.
  EXPECT_EQ(0,
            testkit::largest_difference(folder_->records("plain"), folder_->records("averaged")));
  EXPECT_TRUE(file_of("plain", 24, "weights.safetensors") ==
              file_of("averaged", 24, "weights.safetensors"));
  EXPECT_FALSE(file_of("averaged", 24, "ema.safetensors") ==
               file_of("averaged", 24, "weights.safetensors"));
  EXPECT_FALSE(fs::exists(checkpoint_folder(run_folder("plain"), 24) / "ema.safetensors"));

  // What loads a checkpoint takes the weights that were validated: the averages.
  const auto plain = validations("plain"), found = validations("averaged");
  const double tokens = score("plain", 24) / plain.at(24);
  EXPECT_NEAR(score("averaged", 24) / tokens, found.at(24), 1e-4);
  EXPECT_NEAR(score("averaged", 8) / tokens, found.at(8), 1e-4);
  EXPECT_GT(std::abs(found.at(24) - plain.at(24)), 1e-3) << "too close to tell";

  const auto best = std::min_element(
      found.begin(), found.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  EXPECT_EQ(read_best(run_folder("averaged"))->update, best->first);
  EXPECT_NEAR(read_best(run_folder("averaged"))->score, best->second, 1e-9);
}

// One step of this rate, and nothing that the model computes is finite.
TEST_F(Training, GradientsThatAreNotFiniteAreSkippedAndAtLastStopTheRun) {
  const Settings settings{
      "trainer.schedule.peak_rate=1e30",     "trainer.schedule.warmup_updates=0",
      "trainer.optimizer.clip_norm=none",    "trainer.max_skipped_updates=3",
      "trainer.checkpoints.every_updates=1", "trainer.validation.every_updates=2",
      "trainer.validation.bleu_sentences=4"};
  for (const int ranks : {1, 2}) {
    const std::string run = "astray" + std::to_string(ranks);
    const ProgramResult skips =
        folder_->train_ranks(run, settings + Settings{"trainer.max_updates=3"}, ranks);
    EXPECT_EQ(skips.exit_code, 0) << skips.err;
    EXPECT_EQ(2, occurrences(skips.err, "is not finite: skipped on all ranks")) << skips.err;
    // Nothing is saved in between: it would be no better than what is there, or worse.
    EXPECT_FALSE(fs::exists(checkpoint_folder(run_folder(run), 2)));
    // Skipped means that nothing moves, on the rank that saves as on those that don't.
    EXPECT_TRUE(file_of(run, 1, "weights.safetensors") == file_of(run, 3, "weights.safetensors"));
    EXPECT_TRUE(file_of(run, 1, "optimizer.safetensors") ==
                file_of(run, 3, "optimizer.safetensors"));

    const ProgramResult astray = folder_->train_ranks(run, settings, ranks);
    EXPECT_EQ(astray.exit_code, 2) << astray.err;
    EXPECT_EQ(1, occurrences(astray.err, "error: ")) << astray.err;
    EXPECT_THAT(astray.err, HasSubstr("3 updates in a row had a gradient that is not finite, the "
                                      "last was update 4 ("));
    EXPECT_THAT(astray.err, HasSubstr(folder_->path("train.source") + " line "));
  }
  const ProgramResult translated = ExperimentFolder::octavo(
      {"translate", checkpoint_folder(run_folder("astray2"), 3).string()}, "ba du\n");
  EXPECT_EQ(translated.exit_code, 2);
  EXPECT_THAT(translated.err, HasSubstr("the model's output is not a number"));
}

// Beyond what float32 holds: the weights themselves are lost, and with them whatever follows.
TEST_F(Training, WeightsThatAreNotFiniteAreNeverSaved) {
  const Settings settings{"trainer.schedule.peak_rate=1e300", "trainer.schedule.warmup_updates=0",
                          "trainer.checkpoints.every_updates=1", "trainer.max_updates=3"};
  const ProgramResult lost = folder_->train_ranks("lost", settings, 2);
  EXPECT_EQ(lost.exit_code, 2) << lost.err;
  EXPECT_EQ(1, occurrences(lost.err, "error: ")) << lost.err;
  EXPECT_THAT(lost.err, HasSubstr("the weights are no longer finite after update 1"));
  EXPECT_TRUE(list_checkpoints(run_folder("lost")).empty());
}

TEST_F(Training, AutomaticBatchesAreWhatMemoryAllows) {
  const Settings smooth{"model.activation=gelu", "trainer.max_updates=12"};
  ASSERT_EQ(folder_->train("roomy", smooth).exit_code, 0);
  const ProgramResult tight =
      folder_->train("tight", smooth + Settings{"trainer.memory_gigabytes=0.008"});
  ASSERT_EQ(tight.exit_code, 0) << tight.err;
  const std::string words = "for micro-batches of ";
  const std::size_t at = tight.err.find(words);
  ASSERT_NE(at, std::string::npos) << tight.err;
  const int tokens = std::stoi(tight.err.substr(at + words.size()));
  EXPECT_LT(tokens, 1400 / 2);
  EXPECT_GE(tokens, 128);  // one sentence
  // Smaller batches, the same training.
  EXPECT_LE(testkit::largest_difference(folder_->records("roomy"), folder_->records("tight")),
            testkit::kSameTraining);

  const ProgramResult hopeless =
      folder_->train("hopeless", smooth + Settings{"trainer.memory_gigabytes=0.001"});
  EXPECT_EQ(hopeless.exit_code, 2);
  EXPECT_THAT(hopeless.err, HasSubstr("a micro-batch of 128 target tokens takes 0.00"));
  EXPECT_THAT(hopeless.err, HasSubstr("but 0.001 GB may be used. Lower trainer.max_tokens"));
}

}  // namespace
}  // namespace octavo
