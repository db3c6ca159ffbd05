// A writer may be killed at any moment: whatever it leaves must be whole.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstring>
#include <functional>

#include "core/file.h"
#include "tests/testkit/kill.h"
#include "tests/testkit/temp_folder.h"
#include "trainer/checkpoint.h"
#include "trainer/run_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testkit::Kill;
using testkit::TempFolder;

/// Memory has no fsync to wait for.
fs::path fast_folder() {
  return fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
}

/// A checkpoint whose every file tells `update`; its weights take several writes.
class Sample {
 public:
  explicit Sample(std::int64_t update) : weights_(700'000, static_cast<float>(update)) {
    const auto size = static_cast<std::int64_t>(weights_.size());
    contents_.tensors[std::string(kWeightsFile)] = {
        {"w", DType::f32, {size}, std::as_bytes(std::span(weights_))}};
    contents_.texts[std::string(kStateFile)] = to_json({.update = update});
    contents_.texts[std::string(kSettingsFile)] = "a: " + std::to_string(update) + "\n";
  }
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;
  const CheckpointContents& contents() const { return contents_; }

 private:
  std::vector<float> weights_;
  CheckpointContents contents_;
};

/// The update that every file of a whole checkpoint tells. @throws UserError  it is damaged.
std::int64_t update_in(const fs::path& folder) {
  const Checkpoint checkpoint(folder);
  checkpoint.verify();
  const std::int64_t update = checkpoint.state().update;
  EXPECT_EQ("a: " + std::to_string(update) + "\n", checkpoint.text(kSettingsFile));
  const SafetensorsFile file = checkpoint.tensors(kWeightsFile);
  const auto weights = file.bytes(file.entries().at(0));
  float first = 0;
  std::memcpy(&first, weights.data(), sizeof first);
  EXPECT_EQ(static_cast<float>(update), first);
  EXPECT_EQ(3u, checkpoint.files().size());
  return update;
}

/// Kills `work` at each of its system calls, each time after `prepare`, and checks.
/// @returns how often it was killed; 0 if this system forbids it.
std::int64_t kill_everywhere(const std::function<void()>& prepare,
                             const std::function<void()>& work,
                             const std::function<void()>& check) {
  for (std::int64_t n = 1;; ++n) {
    prepare();
    const Kill end = testkit::kill_at_call(n, work);
    if (end == Kill::no_ptrace) return 0;
    EXPECT_NE(Kill::failed, end) << "at call " << n;
    check();
    if (end != Kill::killed || testing::Test::HasFailure()) return n;
  }
}

class KilledWriter : public testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::warn);  // not a line for every leftover removed
    fs::create_directory(checkpoints_folder(run_));
    write_checkpoint(checkpoint_folder(run_, 1), Sample(1).contents());
  }

  void TearDown() override { spdlog::set_level(spdlog::level::info); }

  TempFolder folder_{fast_folder()};
  fs::path run_ = folder_.path();
};

TEST_F(KilledWriter, LeavesOldCheckpointsAndAWholeOrNoNewOne) {
  const Sample sample(2);
  const fs::path fresh = checkpoint_folder(run_, 2);
  std::int64_t absent = 0, whole = 0;
  const std::int64_t kills = kill_everywhere(
      [&] {
        remove_leftovers(checkpoints_folder(run_));
        fs::remove_all(fresh);
      },
      [&] { write_checkpoint(fresh, sample.contents()); },
      [&] {
        EXPECT_EQ(1, update_in(checkpoint_folder(run_, 1)));
        if (!fs::exists(fresh))
          ++absent;
        else if (update_in(fresh) == 2)
          ++whole;
        EXPECT_EQ(fs::exists(fresh) ? 2 : 1, update_in(find_checkpoint(run_)));
        EXPECT_EQ(fs::exists(fresh) ? 2u : 1u, list_checkpoints(run_).size());
      });
  if (kills == 0) GTEST_SKIP() << "ptrace is not permitted here";
  EXPECT_GT(absent, 20);
  EXPECT_GT(whole, 1);
  EXPECT_EQ(kills, absent + whole);
}

TEST_F(KilledWriter, CanBeFollowedByAnotherWithoutCleaning) {
  const Sample sample(2);
  const fs::path fresh = checkpoint_folder(run_, 2);
  const std::int64_t kills =
      kill_everywhere([] {}, [&] { write_checkpoint(fresh, sample.contents()); },
                      [&] { EXPECT_EQ(1, update_in(checkpoint_folder(run_, 1))); });
  if (kills == 0) GTEST_SKIP() << "ptrace is not permitted here";
  EXPECT_EQ(2, update_in(fresh));
}

TEST_F(KilledWriter, ReplacesACheckpointInOneStep) {
  const Sample before(1), after(3);
  const fs::path place = checkpoint_folder(run_, 1);
  std::int64_t old = 0, replaced = 0;
  const std::int64_t kills = kill_everywhere([&] { write_checkpoint(place, before.contents()); },
                                             [&] { write_checkpoint(place, after.contents()); },
                                             [&] { ++(update_in(place) == 1 ? old : replaced); });
  if (kills == 0) GTEST_SKIP() << "ptrace is not permitted here";
  EXPECT_GT(old, 20);
  EXPECT_GT(replaced, 5);
}

TEST_F(KilledWriter, RemovesACheckpointInOneStep) {
  const Sample sample(2);
  const fs::path doomed = checkpoint_folder(run_, 2);
  std::int64_t absent = 0, whole = 0;
  const std::int64_t kills = kill_everywhere(
      [&] { write_checkpoint(doomed, sample.contents()); }, [&] { remove_checkpoint(doomed); },
      [&] {
        EXPECT_EQ(1, update_in(checkpoint_folder(run_, 1)));
        if (!fs::exists(doomed))
          ++absent;
        else if (update_in(doomed) == 2)
          ++whole;
        EXPECT_EQ(fs::exists(doomed) ? 2u : 1u, list_checkpoints(run_).size());
      });
  if (kills == 0) GTEST_SKIP() << "ptrace is not permitted here";
  EXPECT_GT(absent, 5);
  EXPECT_GT(whole, 1);
  remove_leftovers(checkpoints_folder(run_));
  EXPECT_EQ(1, std::distance(fs::directory_iterator(checkpoints_folder(run_)), {}));
}

TEST_F(KilledWriter, PointsToOneBestCheckpointOrTheOther) {
  write_checkpoint(checkpoint_folder(run_, 2), Sample(2).contents());
  std::int64_t old = 0, fresh = 0;
  const std::int64_t kills =
      kill_everywhere([&] { write_best(run_, {.update = 1, .metric = "bleu", .score = 20}); },
                      [&] { write_best(run_, {.update = 2, .metric = "bleu", .score = 21}); },
                      [&] { ++(update_in(find_checkpoint(run_)) == 1 ? old : fresh); });
  if (kills == 0) GTEST_SKIP() << "ptrace is not permitted here";
  EXPECT_GT(old, 3);
  EXPECT_GT(fresh, 0);
}

}  // namespace
}  // namespace octavo
