#include "trainer/report_window.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

namespace octavo {
namespace {

StepReport step(std::int64_t update, double loss, std::int64_t tokens) {
  return {.update = update,
          .epoch = 3,
          .loss = loss,
          .nll = loss - 1,
          .rate = 1e-3 * static_cast<double>(update),
          .norm = loss / 2,
          .finite = true,
          .source_tokens = 2 * tokens,
          .target_tokens = tokens,
          .sentences = 5,
          .seconds = 2,
          .data_seconds = 0.5,
          .collective_seconds = 0.25,
          .flop_utilisation = static_cast<double>(update) / 10};
}

TEST(ReportWindow, WeighsByTokens) {
  ReportWindow window;
  EXPECT_TRUE(window.empty());
  window.add(step(7, 4, 100));
  window.add(step(8, 2, 300));
  const TrainingReport r = window.report(60);
  EXPECT_EQ(8, r.update);
  EXPECT_EQ(3, r.epoch);
  EXPECT_EQ(60, r.seconds);
  EXPECT_DOUBLE_EQ(2.5, r.loss);
  EXPECT_DOUBLE_EQ(1.5, r.nll);
  EXPECT_DOUBLE_EQ(std::exp(1.5), r.perplexity());
  EXPECT_DOUBLE_EQ(8e-3, r.rate);
  EXPECT_DOUBLE_EQ(1.5, r.gradient_norm);
  EXPECT_EQ(2, r.updates);
  EXPECT_EQ(0, r.skipped);
  EXPECT_DOUBLE_EQ(200, r.source_tokens_per_second);
  EXPECT_DOUBLE_EQ(100, r.target_tokens_per_second);
  EXPECT_DOUBLE_EQ(2.5, r.sentences_per_second);
  EXPECT_DOUBLE_EQ(0.5, r.updates_per_second);
  EXPECT_DOUBLE_EQ(0.25, r.data_wait);
  EXPECT_DOUBLE_EQ(0.125, r.collective_wait);
  EXPECT_DOUBLE_EQ(0.75, r.flop_utilisation);
}

TEST(ReportWindow, LeavesSkippedUpdatesOutOfMeans) {
  ReportWindow window;
  StepReport skipped = step(1, 4, 100);
  skipped.finite = false;
  skipped.norm = INFINITY;
  skipped.loss = NAN;
  window.add(skipped);
  EXPECT_TRUE(std::isinf(window.report(0).gradient_norm));
  EXPECT_TRUE(std::isnan(window.report(0).loss));
  window.add(step(2, 4, 100));
  const TrainingReport r = window.report(0);
  EXPECT_DOUBLE_EQ(2, r.gradient_norm);
  EXPECT_DOUBLE_EQ(4, r.loss);
  EXPECT_DOUBLE_EQ(3, r.nll);
  EXPECT_EQ(1, r.skipped);
  EXPECT_DOUBLE_EQ(50, r.target_tokens_per_second);
}

TEST(ReportWindow, BeginsAnew) {
  ReportWindow window;
  window.add(step(1, 9, 100));
  window.clear();
  EXPECT_THROW(window.report(0), InternalError);
  window.add(step(2, 4, 100));
  EXPECT_DOUBLE_EQ(4, window.report(0).loss);
  EXPECT_EQ(1, window.report(0).updates);
}

}  // namespace
}  // namespace octavo
