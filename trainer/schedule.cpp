#include "trainer/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace octavo {
namespace {

/// Source: Vaswani et al. (2017), arXiv:1706.03762, section 5.3.
double transformer_rate(const ScheduleConfig& config, double width, double update) {
  const double warmup = static_cast<double>(config.warmup_updates);
  const double rising = warmup > 0 ? update * std::pow(warmup, -1.5) : INFINITY;
  return config.factor / std::sqrt(width) * std::min(1 / std::sqrt(update), rising);
}

/// How much of the decay is over, from 0 at the end of the warm-up to 1 at the end of training.
///
/// At the pace so far the warm-up took progress * warmup / update of the training. What has passed
/// since, over what there was to pass, is the result; with progress = update / max_updates it is
/// (update - warmup) / (max_updates - warmup).
double decay_share(double warmup, double update, double progress) {
  const double share = warmup / update;
  const double left = 1 - progress * share;
  return left > 0 ? std::clamp(progress * (1 - share) / left, 0.0, 1.0) : 1.0;
}

}  // namespace

Schedule::Schedule(const ScheduleConfig& config, std::int64_t width)
    : config_(config), width_(width) {
  expect(width > 0, "Schedule: the width must be positive");
}

bool Schedule::needs_progress() const {
  return config_.kind == ScheduleKind::linear || config_.kind == ScheduleKind::cosine;
}

double Schedule::rate(std::int64_t update, double progress) const {
  expect(update >= 1, "Schedule::rate: updates count from 1");
  expect(!needs_progress() || (progress >= 0 && progress <= 1),
         "Schedule::rate: progress is a share");
  const double u = static_cast<double>(update);
  const double warmup = static_cast<double>(config_.warmup_updates);
  const double peak = config_.peak_rate, last = config_.final_rate;
  if (config_.kind == ScheduleKind::transformer)
    return transformer_rate(config_, static_cast<double>(width_), u);
  if (update < config_.warmup_updates)
    return config_.initial_rate + (peak - config_.initial_rate) * (u / warmup);
  switch (config_.kind) {
    case ScheduleKind::inverse_sqrt:
      return peak * std::sqrt(std::max(warmup, 1.0) / u);
    case ScheduleKind::linear:
      return last + (peak - last) * (1 - decay_share(warmup, u, progress));
    case ScheduleKind::cosine:
      return last + (peak - last) * 0.5 *
                        (1 + std::cos(std::numbers::pi * decay_share(warmup, u, progress)));
    default:
      return peak;
  }
}

}  // namespace octavo
