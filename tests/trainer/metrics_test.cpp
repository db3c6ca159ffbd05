#include "trainer/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/lines.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"
#include "trainer/tensorboard.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testkit::TempFolder;

/// A clock that goes on by one second each time it is asked.
std::function<double()> steps() {
  auto now = std::make_shared<double>(1764447000.25);
  return [now] { return (*now)++; };
}

TrainingReport report_at(std::int64_t update) {
  return {.update = update,
          .epoch = 1,
          .seconds = 0.1 * static_cast<double>(update),
          .loss = 4.5,
          .nll = 4.0,
          .rate = 1e-7};
}

std::vector<Json> records(const fs::path& run) {
  std::vector<Json> all;
  for (const std::string& line : read_lines(run / "metrics.jsonl"))
    all.push_back(Json::parse(line));
  return all;
}

std::vector<std::string> places(const fs::path& run) {
  std::vector<std::string> all;
  for (const Json& r : records(run))
    all.push_back(r.at("kind").get<std::string>() + " " + r.at("update").dump());
  return all;
}

/// The only file in RUN/tensorboard.
fs::path event_file(const fs::path& run) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(run / "tensorboard"))
    files.push_back(entry.path());
  EXPECT_EQ(1u, files.size());
  return files.at(0);
}

TEST(Metrics, WritesOneObjectForEachReport) {
  const TempFolder run;
  MetricsLog log(run.path(), 0, steps());
  TrainingReport report = report_at(100);
  report.flop_utilisation = 0.5;
  log.write(report);
  log.write(ValidationReport{.update = 100, .nll = 4, .bleu = 20.25, .best = true});
  const std::vector<Json> all = records(run.path());
  ASSERT_EQ(2u, all.size());
  EXPECT_EQ("train", all[0]["kind"]);
  EXPECT_EQ(100, all[0]["update"]);
  EXPECT_EQ(0.1 * 100, all[0]["seconds"]);
  EXPECT_EQ(std::exp(4.0), all[0]["perplexity"]);
  EXPECT_EQ(0.5, all[0]["flop_utilisation"]);
  EXPECT_EQ(1764447001.25, all[0]["time"]);
  EXPECT_EQ("validation", all[1]["kind"]);
  EXPECT_EQ(20.25, all[1]["bleu"]);
  EXPECT_EQ(true, all[1]["best"]);
}

TEST(Metrics, WhatIsNotFiniteIsNull) {
  const TempFolder run;
  MetricsLog log(run.path(), 0, steps());
  TrainingReport report = report_at(1);
  report.loss = std::nan("");
  report.nll = INFINITY;
  log.write(report);
  const Json record = records(run.path()).at(0);
  EXPECT_TRUE(record.at("loss").is_null());
  EXPECT_TRUE(record.at("perplexity").is_null());
  EXPECT_THAT(read_file(event_file(run.path())), HasSubstr("train/loss"));
}

TEST(Metrics, EventsAreThoseOfTheLines) {
  const TempFolder run;
  MetricsLog log(run.path(), 0, steps());
  log.write(
      ValidationReport{.update = 7, .epoch = 2, .seconds = 3, .loss = 5, .nll = 0, .bleu = 9});
  const std::vector<std::pair<std::string, float>> scalars{
      {"validation/epoch", 2}, {"validation/seconds", 3},    {"validation/loss", 5},
      {"validation/nll", 0},   {"validation/perplexity", 1}, {"validation/bleu", 9}};
  EXPECT_EQ(first_event(1764447000.25) + restart_event(1764447000.25, 1) +
                scalar_event(1764447001.25, 7, scalars),
            read_file(event_file(run.path())));
}

TEST(Metrics, AResumedRunHasNoPointTwice) {
  const TempFolder run;
  {
    MetricsLog log(run.path(), 0, steps());
    for (const std::int64_t update : {100, 200, 300}) log.write(report_at(update));
    log.write(ValidationReport{.update = 300});
    log.write(report_at(400));
  }
  MetricsLog log(run.path(), 300, [] { return 1764448000.0; });
  EXPECT_THAT(places(run.path()),
              ElementsAre("train 100", "train 200", "train 300", "validation 300"));
  log.write(report_at(400));
  EXPECT_EQ("train 400", places(run.path()).back());
  // The former file stays; the new one, read after it, begins with what TensorBoard shall forget.
  EXPECT_THAT(read_file(run / "tensorboard/events.out.tfevents.1764447000.octavo"),
              HasSubstr("validation/loss"));
  EXPECT_THAT(read_file(run / "tensorboard/events.out.tfevents.1764448000.octavo"),
              testing::StartsWith(first_event(1764448000.0) + restart_event(1764448000.0, 301)));
}

TEST(Metrics, ANewRunInAnOldFolderStartsEmpty) {
  const TempFolder run;
  MetricsLog(run.path(), 0, steps()).write(report_at(5));
  MetricsLog(run.path(), 0, steps()).write(report_at(6));
  EXPECT_THAT(places(run.path()), ElementsAre("train 6"));
}

TEST(Metrics, DamagedLinesAreDropped) {
  const TempFolder run;
  MetricsLog(run.path(), 0, steps()).write(report_at(1));
  const std::string good = read_file(run / "metrics.jsonl");
  run.write("metrics.jsonl", "\n{}\n3\n{\"update\": \"x\"}\n" + good + good.substr(0, 40));
  MetricsLog log(run.path(), 10, steps());
  EXPECT_EQ(good, read_file(run / "metrics.jsonl"));
}

TEST(Metrics, SurviveAKill) {
  const TempFolder run;
  EXPECT_EQ("died", testkit::in_child([&] {
              MetricsLog log(run.path(), 0, steps());
              log.write(report_at(1));
              std::raise(SIGKILL);
              return std::string();
            }));
  EXPECT_THAT(places(run.path()), ElementsAre("train 1"));
}

TEST(Metrics, AFullDiskDoesNotStopTheRun) {
  const TempFolder run;
  EXPECT_EQ("going on", testkit::with_file_size_limit(2000, [&] {
              MetricsLog log(run.path(), 0, steps());
              for (std::int64_t update = 1; update < 100; ++update) log.write(report_at(update));
              return std::string("going on");
            }));
  EXPECT_GE(records(run.path()).size(), 2u);  // every line is whole
  EXPECT_LE(fs::file_size(run / "metrics.jsonl"), 2000u);
}

TEST(Metrics, AFolderThatCannotBeWrittenIsAnErrorAtTheStart) {
  const TempFolder run;
  EXPECT_THAT(testkit::message_of<UserError>([&] { MetricsLog log(run / "none", 0, steps()); }),
              HasSubstr("none"));
  run.write("tensorboard", "a file");
  EXPECT_THAT(testkit::message_of<UserError>([&] { MetricsLog log(run.path(), 0, steps()); }),
              HasSubstr("cannot make"));
  EXPECT_THAT(testkit::with_file_size_limit(10,
                                            [&] {
                                              const TempFolder full;
                                              MetricsLog log(full.path(), 0, steps());
                                              return std::string("going on");
                                            }),
              HasSubstr("cannot begin"));
}

/// "| `loss` | nats per target token |"
class PageRows {
 public:
  void metric(const char* name, double, const char* unit) {
    rows_.push_back(std::string("| `") + name + "` | " + unit + " |");
  }
  const std::vector<std::string>& rows() const { return rows_; }

 private:
  std::vector<std::string> rows_;
};

TEST(Metrics, ThePageNamesEveryKeyWithItsUnit) {
  const std::string page = read_file(OCTAVO_SOURCE_DIR "/docs/formats/metrics.md");
  PageRows rows;
  TrainingReport{}.describe(rows);
  ValidationReport{.bleu = 1.0}.describe(rows);
  for (const std::string& row : rows.rows()) EXPECT_THAT(page, HasSubstr(row));
}

}  // namespace
}  // namespace octavo
