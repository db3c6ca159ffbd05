#include "trainer/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"
#include "trainer/progress_text.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using testing::Not;

Progress sample() {
  return {.report = {.update = 12'340,
                     .epoch = 2,
                     .seconds = 600,
                     .loss = 4.2134,
                     .nll = std::log(35.26),
                     .rate = 4.97e-4,
                     .gradient_norm = 1.234,
                     .updates = 100,
                     .source_tokens_per_second = 3211,
                     .target_tokens_per_second = 3456,
                     .data_wait = 0.012,
                     .collective_wait = 0.204,
                     .flop_utilisation = 0.351},
          .max_updates = 50'000,
          .share = 0.25};
}

TEST(ProgressText, ShortNumbersHaveThreeDigits) {
  EXPECT_EQ("0", short_number(0));
  EXPECT_EQ("7", short_number(7));
  EXPECT_EQ("0.50", short_number(0.5));
  EXPECT_EQ("35.3", short_number(35.26));
  EXPECT_EQ("10.0", short_number(9.996));
  EXPECT_EQ("950", short_number(950));
  EXPECT_EQ("999", short_number(999.4));
  EXPECT_EQ("1.00k", short_number(999.6));
  EXPECT_EQ("3.21k", short_number(3211));
  EXPECT_EQ("12.3M", short_number(12'345'678));
  EXPECT_EQ("1.00G", short_number(999'600'000));
  EXPECT_EQ("5000T", short_number(5e15));
  EXPECT_EQ("-3.21k", short_number(-3211));
  EXPECT_EQ("inf", short_number(std::numeric_limits<double>::infinity()));
}

TEST(ProgressText, DurationsHaveTwoUnits) {
  EXPECT_EQ("0s", short_duration(-1));
  EXPECT_EQ("0s", short_duration(0.4));
  EXPECT_EQ("59s", short_duration(59.4));
  EXPECT_EQ("1m00s", short_duration(59.6));
  EXPECT_EQ("12m05s", short_duration(725));
  EXPECT_EQ("3h07m", short_duration(3 * 3600 + 7 * 60 + 59));
  EXPECT_EQ("2d04h", short_duration(52 * 3600));
  EXPECT_EQ("?", short_duration(std::nan("")));
  EXPECT_EQ("?", short_duration(1e300));
}

TEST(ProgressText, CommasEveryThreeDigits) {
  EXPECT_EQ("0", with_commas(0));
  EXPECT_EQ("999", with_commas(999));
  EXPECT_EQ("1,000", with_commas(1000));
  EXPECT_EQ("-123,456", with_commas(-123'456));
  EXPECT_EQ("9,223,372,036,854,775,807", with_commas(INT64_MAX));
}

TEST(ProgressText, ThePlainLineTellsAll) {
  EXPECT_EQ(
      "25% | update 12,340/50,000 | epoch 3 | loss 4.213 | ppl 35.3 | rate 4.97e-04 | norm 1.23 | "
      "src 3.21k/s tgt 3.46k/s | wait data 1% ranks 20% | 35% of peak | 30m00s left",
      plain_line(sample()));
}

TEST(ProgressText, WhatIsUnknownIsNotShown) {
  Progress p = sample();
  p.share = std::nullopt;
  p.max_updates = std::nullopt;
  p.report.skipped = 2;
  EXPECT_EQ(
      "update 12,340 | epoch 3 | loss 4.213 | ppl 35.3 | rate 4.97e-04 | norm 1.23 | 2 skipped | "
      "src 3.21k/s tgt 3.46k/s | wait data 1% ranks 20% | 35% of peak",
      plain_line(p));
  p.share = 0.0;
  EXPECT_THAT(plain_line(p), Not(HasSubstr("left")));
  p.report.loss = std::nan("");
  p.report.data_wait = std::nan("");
  EXPECT_THAT(plain_line(p), HasSubstr("loss nan"));
}

TEST(ProgressText, TimeLeftFollowsThePace) {
  Progress p = sample();
  EXPECT_EQ(1800, seconds_left(p));
  p.share = 1.0;
  EXPECT_EQ(0, seconds_left(p));
  p.share = 1.5;
  EXPECT_EQ(0, seconds_left(p));
  p.share = std::nullopt;
  EXPECT_FALSE(seconds_left(p));
}

TEST(ProgressText, TheLiveLineFitsEveryWidth) {
  std::size_t before = 0;
  for (int width = 0; width <= 250; ++width) {
    const std::string line = live_line(sample(), width);
    EXPECT_LE(line.size(), static_cast<std::size_t>(width));
    before = line.size();
  }
  EXPECT_GT(before, 150u);
}

TEST(ProgressText, WhatMattersLeastGoesFirst) {
  EXPECT_EQ("update 12,340/50,000  loss 4.213", live_line(sample(), 38));
  EXPECT_EQ("25%  update 12,340/50,000  loss 4.213  30m00s left", live_line(sample(), 59));
  EXPECT_EQ("[#-----]  25%  update 12,340/50,000  loss 4.213  30m00s left",
            live_line(sample(), 60));
  EXPECT_EQ("[##-------]  25%  update 12,340/50,000  epoch 3  loss 4.213  ppl 35.3  30m00s left",
            live_line(sample(), 82));
  EXPECT_EQ("update 12,", live_line(sample(), 10));
  EXPECT_THAT(live_line(sample(), 250),
              testing::AllOf(testing::StartsWith("[#######-----------------------]  25%  update"),
                             testing::EndsWith("35% of peak  30m00s left")));
}

TEST(ProgressText, TheBarIsNeverTooLong) {
  Progress p = sample();
  for (const double share : {-0.5, 0.0, 0.999, 1.0, 7.0}) {
    p.share = share;
    EXPECT_LE(live_line(p, 200).size(), 200u);
  }
  p.share = 1.0;
  EXPECT_THAT(live_line(p, 250), HasSubstr("[##############################]"));
  p.share = 0.999;
  EXPECT_THAT(live_line(p, 250), HasSubstr("#-]"));
}

/// What f writes to stderr, in a child of its own whose stderr is a file.
std::string stderr_of(const std::function<void()>& f) {
  const testkit::TempFolder folder;
  const std::string end = testkit::in_child([&] {
    const int file = ::open((folder / "err").c_str(), O_WRONLY | O_CREAT, 0666);
    ::dup2(file, STDERR_FILENO);
    set_up_log(0);
    f();
    return std::string("returned");
  });
  EXPECT_EQ("returned", end);
  return read_file(folder / "err");
}

TEST(ProgressDisplay, PlainReportsAreLinesOfTheLog) {
  EXPECT_EQ("[trainer] " + plain_line(sample()) + "\n", stderr_of([] {
              ProgressDisplay display(ProgressStyle::plain);
              EXPECT_FALSE(display.due());
              display.update(sample());
              display.report(sample());
            }));
}

TEST(ProgressDisplay, LogMessagesStandAboveTheLiveLine) {
  const std::string line = live_line(sample(), 79);
  const std::string clear = "\r\x1b[K";
  EXPECT_EQ("[a] before\n" + clear + line + clear + "warning: [b] between\n" + line + clear + line +
                "\n[c] behind\n",
            stderr_of([] {
              ::setenv("COLUMNS", "80", 1);
              {
                ProgressDisplay display(ProgressStyle::live);
                spdlog::info("[a] before");
                display.report(sample());
                display.report(sample());  // too soon to be drawn before the end
                spdlog::warn("[b] between");
                spdlog::debug("[b] not shown");
              }
              spdlog::info("[c] behind");
            }));
}

TEST(ProgressDisplay, NoLineIsLeftWhereNoneWasDrawn) {
  EXPECT_EQ("", stderr_of([] { ProgressDisplay display(ProgressStyle::live); }));
}

TEST(TerminalColumns, AreThoseOfTheTerminalElseOfTheEnvironment) {
  EXPECT_EQ("59 39 99 19", testkit::in_child([] {
              int master = -1, slave = -1;
              winsize size{.ws_row = 24, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
              expect(::openpty(&master, &slave, nullptr, nullptr, &size) == 0, "openpty failed");
              ::setenv("COLUMNS", "40", 1);
              std::string found = std::to_string(terminal_columns(slave));
              const int null = ::open("/dev/null", O_WRONLY);
              found += " " + std::to_string(terminal_columns(null));
              ::unsetenv("COLUMNS");
              found += " " + std::to_string(terminal_columns(null));
              ::setenv("COLUMNS", "3", 1);
              return found + " " + std::to_string(terminal_columns(null));
            }));
}

}  // namespace
}  // namespace octavo
