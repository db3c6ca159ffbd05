#include "trainer/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/file.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"
#include "trainer/checkpoint.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testkit::message_of;
using testkit::TempFolder;

/// A run with these checkpoints.
void make_run(const fs::path& run, const std::vector<std::int64_t>& updates) {
  fs::create_directories(checkpoints_folder(run));
  for (const std::int64_t update : updates)
    write_checkpoint(checkpoint_folder(run, update),
                     {.tensors = {}, .texts = {{"a", "b"}}, .remarks = {}});
}

std::vector<std::int64_t> updates_in(const fs::path& run) {
  std::vector<std::int64_t> updates;
  for (const StepCheckpoint& c : list_checkpoints(run)) updates.push_back(c.update);
  return updates;
}

TEST(RunFolder, ListsCompleteCheckpointsByUpdate) {
  const TempFolder run;
  EXPECT_THAT(list_checkpoints(run.path()), IsEmpty());
  make_run(run.path(), {200'000'000, 5, 0, 1000});
  for (const char* name : {"step_00000007", "step_7", "step_-0000001", "step_", "step_x",
                           "step_00000009.octavo.tmp", "other"})
    fs::create_directory(checkpoints_folder(run.path()) / name);
  run.write("checkpoints/step_7/manifest.json", "");
  run.write("checkpoints/step_-0000001/manifest.json", "");
  EXPECT_THAT(updates_in(run.path()), ElementsAre(0, 5, 1000, 200'000'000));
  EXPECT_EQ("step_00001000", list_checkpoints(run.path())[2].path.filename());
}

TEST(RunFolder, FindsTheCheckpointThatIsMeant) {
  const TempFolder run;
  make_run(run.path(), {1, 2, 3});
  EXPECT_EQ(checkpoint_folder(run.path(), 3), find_checkpoint(run.path()));
  write_best(run.path(), {.update = 2, .metric = "bleu", .score = 27.25});
  EXPECT_EQ(checkpoint_folder(run.path(), 2), find_checkpoint(run.path()));
  EXPECT_EQ(checkpoint_folder(run.path(), 1), find_checkpoint(checkpoint_folder(run.path(), 1)));
  const std::optional<BestCheckpoint> best = read_best(run.path());
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(2, best->update);
  EXPECT_EQ("bleu", best->metric);
  EXPECT_EQ(27.25, best->score);
}

TEST(RunFolder, SaysWhyThereIsNoCheckpoint) {
  const TempFolder folder;
  const auto refusal = [&](const fs::path& path) {
    return message_of<UserError>([&] { find_checkpoint(path); });
  };
  EXPECT_THAT(refusal(folder / "none"), HasSubstr("there is no"));
  EXPECT_THAT(refusal(folder.path()), HasSubstr("neither a checkpoint"));
  EXPECT_THAT(refusal(folder.write("file", "")), HasSubstr("neither a checkpoint"));
  make_run(folder.path(), {});
  EXPECT_THAT(refusal(folder.path()), HasSubstr("no checkpoint yet"));
  make_run(folder.path(), {1});
  write_best(folder.path(), {.update = 4, .metric = "bleu", .score = 1});
  EXPECT_THAT(refusal(folder.path()), HasSubstr("step_00000004 as the best checkpoint, but it is"));
  folder.write("checkpoints/best.json", "{\"update\": \"x\"}");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("best.json is damaged"));
  folder.write("checkpoints/best.json", "");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("best.json is damaged"));
}

std::vector<std::int64_t> expired_of(const std::vector<std::int64_t>& updates,
                                     const RetentionConfig& config,
                                     std::optional<std::int64_t> best) {
  return expired(updates, config, best);
}

TEST(Retention, KeepsTheLastOnes) {
  EXPECT_THAT(expired_of({}, {}, {}), IsEmpty());
  EXPECT_THAT(expired_of({1, 2, 3}, {.keep_last = 3}, {}), IsEmpty());
  EXPECT_THAT(expired_of({1, 2, 3, 4}, {.keep_last = 3}, {}), ElementsAre(1));
  EXPECT_THAT(expired_of({1, 2, 3, 4}, {.keep_last = 1}, {}), ElementsAre(1, 2, 3));
  EXPECT_THAT(expired_of({7}, {.keep_last = 1}, {}), IsEmpty());
}

TEST(Retention, KeepsTheBest) {
  EXPECT_THAT(expired_of({1, 2, 3, 4}, {.keep_last = 1}, 2), ElementsAre(1, 3));
  EXPECT_THAT(expired_of({1, 2, 3, 4}, {.keep_last = 1}, 4), ElementsAre(1, 2, 3));
  EXPECT_THAT(expired_of({1, 2}, {.keep_last = 1}, 99), ElementsAre(1));
}

TEST(Retention, KeepsTheFirstOfEachStretch) {
  const RetentionConfig every{.keep_last = 1, .keep_every = 10};
  EXPECT_THAT(expired_of({5, 10, 15, 20, 25, 30, 35}, every, {}), ElementsAre(5, 15, 25));
  // Saved by the clock: no update is a multiple.
  EXPECT_THAT(expired_of({7, 13, 19, 24, 31, 38, 41}, every, {}), ElementsAre(7, 19, 38));
  // What was kept once is kept again.
  EXPECT_THAT(expired_of({13, 24, 31, 41, 44}, every, {}), IsEmpty());
}

TEST(Retention, RemovesFromTheDisk) {
  const TempFolder run;
  make_run(run.path(), {1, 2, 3, 4, 5, 6});
  write_best(run.path(), {.update = 2, .metric = "bleu", .score = 1});
  remove_expired(run.path(), {.keep_last = 2, .keep_every = 3});
  EXPECT_THAT(updates_in(run.path()), ElementsAre(2, 3, 5, 6));
  EXPECT_EQ(5, std::distance(fs::directory_iterator(checkpoints_folder(run.path())), {}));
}

}  // namespace
}  // namespace octavo
