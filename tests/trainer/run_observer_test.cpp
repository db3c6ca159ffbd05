#include "trainer/run_observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/lines.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testkit::TempFolder;

/// Shows updates [first, last] to an observer that reports every 10.
void show(const TempFolder& run, std::int64_t first, std::int64_t last) {
  RunObserver observer({.run = run.path(),
                        .style = ProgressStyle::plain,
                        .report_every = 10,
                        .max_updates = 100,
                        .max_minutes = std::nullopt,
                        .ranks = 1,
                        .threads = 1});
  TrainingState state{.update = first - 1};
  observer.started(state, MemoryPlan{});
  for (std::int64_t update = first; update <= last; ++update) {
    state.update = update;
    state.seconds = static_cast<double>(update);
    observer.stepped({.update = update,
                      .epoch = 0,
                      .loss = static_cast<double>(update),
                      .nll = 1,
                      .rate = 1,
                      .norm = 1,
                      .finite = true,
                      .source_tokens = 10,
                      .target_tokens = 10,
                      .sentences = 1,
                      .seconds = 1,
                      .data_seconds = 0,
                      .collective_seconds = 0,
                      .flop_utilisation = 0},
                     state);
  }
  ValidationResult result;
  result.loss = 2;
  result.bleu = 30;
  observer.validated(result, state, true);
  observer.ended(TrainingEnd::finished, state);
}

std::vector<std::string> places(const TempFolder& run) {
  std::vector<std::string> found;
  for (const std::string& line : read_lines(run / "metrics.jsonl")) {
    const auto record = nlohmann::json::parse(line);
    found.push_back(record.at("kind").get<std::string>() + " " + record.at("update").dump() + " " +
                    record.at("loss").dump());
  }
  return found;
}

TEST(RunObserver, ReportsMeansAndGoesOnAfterARestart) {
  const TempFolder run;
  show(run, 1, 25);
  EXPECT_THAT(places(run),
              ElementsAre("train 10 5.5", "train 20 15.5", "validation 25 2.0", "train 25 23.0"));
  show(run, 16, 30);  // restored from a checkpoint at update 15
  EXPECT_THAT(places(run),
              ElementsAre("train 10 5.5", "train 20 18.0", "train 30 25.5", "validation 30 2.0"));
}

}  // namespace
}  // namespace octavo
