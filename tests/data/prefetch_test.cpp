#include "data/prefetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "core/error.h"
#include "tests/data/training_sample.h"
#include "tests/testkit/child.h"

namespace octavo {
namespace {

using namespace std::chrono_literals;
using testkit::message_of;

const TrainingSample& sample() {
  static const TrainingSample the_sample;
  return the_sample;
}

TEST(Prefetcher, GivesWhatTheBuilderGives) {
  for (const auto sampling : {std::optional<double>(), std::optional<double>(0.1)}) {
    const TrainingData data = sample().training(sampling);
    for (const std::size_t depth : {1, 2, 5}) {
      const Cursor start{.epoch = 1, .update = 4};
      UpdateBuilder builder(data, small_updates(1, 2), start);
      Prefetcher prefetcher(data, small_updates(1, 2), start, depth);
      UpdateBatches expected;
      for (int k = 0; k < 40; ++k) {
        builder.build(expected);
        const UpdateBatches& given = prefetcher.next();
        ASSERT_EQ(bytes_of(given), bytes_of(expected)) << "update " << k;
      }
    }
  }
}

TEST(Prefetcher, LeavesTheUpdateAloneUntilTheNextCall) {
  Prefetcher prefetcher(sample().training(std::nullopt), small_updates(), {}, 1);
  for (int k = 0; k < 10; ++k) {
    const UpdateBatches& update = prefetcher.next();
    const std::string before = bytes_of(update);
    std::this_thread::sleep_for(3ms);  // time enough to build more than there is room for
    EXPECT_EQ(bytes_of(update), before);
  }
}

TEST(Prefetcher, UsesItsMemoryAgain) {
  Prefetcher prefetcher(sample().training(std::nullopt), small_updates(), {}, 2);
  std::set<const UpdateBatches*> places;
  for (int k = 0; k < 50; ++k) places.insert(&prefetcher.next());
  EXPECT_EQ(places.size(), 3u);
}

TEST(Prefetcher, StopsAtAnyTime) {
  for (int k = 0; k < 30; ++k) {
    Prefetcher prefetcher(sample().training(0.1), small_updates(), {}, 1 + k % 3);
    for (int i = 0; i < k % 5; ++i) prefetcher.next();
  }
}

TEST(Prefetcher, HandsItsFailureOverAfterWhatWasBuilt) {
  UpdateSettings settings = small_updates();
  settings.limits.longest = 90;  // most sentences fit
  settings.tokens_per_update = 100;
  const TrainingData data = sample().training(std::nullopt);
  // How many updates there are before the first failure.
  int good = 0;
  std::string failure;
  {
    UpdateBuilder builder(data, settings, {});
    UpdateBatches update;
    failure = message_of<UserError>([&] {
      for (; good < 1000; ++good) builder.build(update);
    });
  }
  ASSERT_GT(good, 0);
  ASSERT_LT(good, 1000) << "every sentence is short: nothing fails";
  Prefetcher prefetcher(data, settings, {}, 2);
  for (int k = 0; k < good; ++k) EXPECT_EQ(prefetcher.next().cursor.update, k);
  EXPECT_EQ(message_of<UserError>([&] { prefetcher.next(); }), failure);
  EXPECT_EQ(message_of<UserError>([&] { prefetcher.next(); }), failure);
}

TEST(Prefetcher, RefusesBadSettingsAtOnce) {
  EXPECT_THROW(Prefetcher(sample().training(1.0), small_updates(), {}), UserError);
}

TEST(Prefetcher, MeasuresWaiting) {
  UpdateSettings settings = small_updates();
  settings.tokens_per_update = 1;
  Prefetcher prefetcher(sample().training(std::nullopt), settings, {}, 3);
  // With time enough the update lies ready, and taking it costs no waiting. Not on every attempt:
  // the machine may be busy.
  int unwaited = 0;
  for (int k = 0; k < 50 && unwaited == 0; ++k) {
    std::this_thread::sleep_for(5ms);
    const auto before = prefetcher.waited();
    prefetcher.next();
    unwaited += prefetcher.waited() == before;
  }
  EXPECT_EQ(unwaited, 1);
  // Faster than anybody can build.
  const auto before = prefetcher.waited();
  for (int k = 0; k < 2000; ++k) prefetcher.next();
  EXPECT_GT(prefetcher.waited(), before);
}

}  // namespace
}  // namespace octavo
