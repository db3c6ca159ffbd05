#include "trainer/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using testkit::message_of;

Schedule schedule(ScheduleKind kind, std::int64_t warmup) {
  return {{.kind = kind,
           .peak_rate = 8e-4,
           .initial_rate = 2e-4,
           .final_rate = 1e-5,
           .factor = 2,
           .warmup_updates = warmup},
          512};
}

TEST(Schedule, TransformerIsThePapersFormula) {
  const Schedule s({.kind = ScheduleKind::transformer, .warmup_updates = 4000}, 512);
  EXPECT_NEAR(1.746928107421711e-07, s.rate(1, 0), 1e-20);     // 512^-0.5 * 4000^-1.5
  EXPECT_NEAR(6.987712429686843e-04, s.rate(4000, 0), 1e-17);  // (512 * 4000)^-0.5
  EXPECT_NEAR(s.rate(4000, 0) / 2, s.rate(2000, 0), 1e-17);
  EXPECT_NEAR(s.rate(4000, 0) / 5, s.rate(100'000, 0), 1e-17);
  EXPECT_NEAR(2 / std::sqrt(512.0 * 9), schedule(ScheduleKind::transformer, 0).rate(9, 0), 1e-15);
  EXPECT_NEAR(2 / std::sqrt(512.0), schedule(ScheduleKind::transformer, 1).rate(1, 0), 1e-15);
}

TEST(Schedule, WarmsUpInAStraightLineThatEndsAtThePeak) {
  for (const auto kind : {ScheduleKind::inverse_sqrt, ScheduleKind::linear, ScheduleKind::cosine,
                          ScheduleKind::constant}) {
    const Schedule s = schedule(kind, 100);
    EXPECT_DOUBLE_EQ(2.06e-4, s.rate(1, 0.001));
    EXPECT_DOUBLE_EQ(5e-4, s.rate(50, 0.05));
    EXPECT_DOUBLE_EQ(8e-4, s.rate(100, 0.1));
    EXPECT_LE(s.rate(101, 0.101), 8e-4);
    EXPECT_DOUBLE_EQ(8e-4, schedule(kind, 1).rate(1, 0));
    EXPECT_DOUBLE_EQ(8e-4, schedule(kind, 0).rate(1, 0));
  }
}

TEST(Schedule, InverseSqrtHalvesWhenUpdatesQuadruple) {
  EXPECT_DOUBLE_EQ(4e-4, schedule(ScheduleKind::inverse_sqrt, 100).rate(400, 0));
  EXPECT_DOUBLE_EQ(4e-4, schedule(ScheduleKind::inverse_sqrt, 0).rate(4, 0));
}

TEST(Schedule, ConstantStays) {
  EXPECT_DOUBLE_EQ(8e-4, schedule(ScheduleKind::constant, 100).rate(123'456'789, 2.5));
}

TEST(Schedule, DecaysFromTheWarmUpsEndToTheLastUpdate) {
  const std::int64_t last = 1100;
  for (const std::int64_t u : {100, 101, 350, 600, 1099, 1100}) {
    const double t = static_cast<double>(u - 100) / 1000;
    const double progress = static_cast<double>(u) / static_cast<double>(last);
    EXPECT_NEAR(8e-4 - 7.9e-4 * t, schedule(ScheduleKind::linear, 100).rate(u, progress), 1e-16);
    EXPECT_NEAR(1e-5 + 7.9e-4 * (0.5 + 0.5 * std::cos(t * std::acos(-1.0))),
                schedule(ScheduleKind::cosine, 100).rate(u, progress), 1e-16);
  }
}

TEST(Schedule, DecaysByTimeToo) {
  const Schedule s = schedule(ScheduleKind::linear, 100);
  // A steady pace of unknown length: 10 updates are 1 % of the time.
  EXPECT_NEAR(8e-4 - 7.9e-4 / 9, s.rate(200, 0.2), 1e-16);
  EXPECT_DOUBLE_EQ(1e-5, s.rate(1033, 1.0));
  // Time is over before the warm-up is.
  EXPECT_LT(s.rate(99, 1.0), 8e-4);
  EXPECT_DOUBLE_EQ(1e-5, s.rate(100, 1.0));
  double before = 1;
  for (std::int64_t u = 100; u <= 1000; ++u) {
    const double progress = std::min(1.0, static_cast<double>(u) * 1e-3 + 1e-5 * (u % 7));
    const double rate = s.rate(u, progress);
    EXPECT_NEAR(rate, before == 1 ? rate : before, 2e-5);
    before = rate;
  }
}

TEST(Schedule, ChecksItsArguments) {
  const Schedule s = schedule(ScheduleKind::linear, 100);
  EXPECT_TRUE(s.needs_progress());
  EXPECT_FALSE(schedule(ScheduleKind::inverse_sqrt, 100).needs_progress());
  for (const double progress : {-0.1, 1.1, std::nan("")})
    EXPECT_NE("nothing thrown", message_of<InternalError>([&] { s.rate(1, progress); }));
  EXPECT_NE("nothing thrown", message_of<InternalError>([&] { s.rate(0, 0); }));
}

TEST(Schedule, ReadsItsSettings) {
  const testkit::TempFolder folder;
  ScheduleConfig config;
  read_settings(config, folder.write("a.yaml", "kind: cosine\npeak_rate: 1e-3\n"));
  EXPECT_EQ(ScheduleKind::cosine, config.kind);
  EXPECT_EQ(1e-3, config.peak_rate);
  EXPECT_THAT(message_of<UserError>(
                  [&] { read_settings(config, folder.write("b.yaml", "final_rate: 1\n")); }),
              testing::HasSubstr("must not exceed peak_rate"));
}

}  // namespace
}  // namespace octavo
