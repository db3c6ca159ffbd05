#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "core/settings.h"

namespace octavo {

/// How the learning rate moves after the warm-up. u is the update, counted from 1; w the number of
/// updates of the warm-up.
enum class ScheduleKind : std::uint8_t {
  transformer,   ///< factor * width^-0.5 * min(u^-0.5, u * w^-1.5), as in the paper
  inverse_sqrt,  ///< peak * sqrt(w / u)
  linear,        ///< from peak to final in a straight line
  cosine,        ///< from peak to final along half a wave
  constant,      ///< peak
};

template <>
struct EnumNames<ScheduleKind> {
  static constexpr std::array<std::pair<ScheduleKind, std::string_view>, 5> values{
      {{ScheduleKind::transformer, "transformer"},
       {ScheduleKind::inverse_sqrt, "inverse_sqrt"},
       {ScheduleKind::linear, "linear"},
       {ScheduleKind::cosine, "cosine"},
       {ScheduleKind::constant, "constant"}}};
};

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::inverse_sqrt;
  double peak_rate = 5e-4;
  double initial_rate = 0;
  double final_rate = 0;
  double factor = 1;
  std::int64_t warmup_updates = 4000;

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("kind", kind,
              "transformer: factor * width^-0.5 * min(u^-0.5, u * warmup^-1.5), as in the paper; "
              "inverse_sqrt: peak * sqrt(warmup / u); linear, cosine: down to final_rate at the "
              "end of training; constant");
    v.setting("peak_rate", peak_rate, "reached at the end of the warm-up; not of 'transformer'",
              v.above(0));
    v.setting("initial_rate", initial_rate,
              "the warm-up begins above this rate; not of 'transformer'", v.at_least(0));
    v.setting("final_rate", final_rate, "where 'linear' and 'cosine' end", v.at_least(0));
    v.setting("factor", factor, "of 'transformer' alone", v.above(0));
    v.setting("warmup_updates", warmup_updates, "updates in which the rate rises, linearly",
              v.at_least(0));
    v.check(initial_rate <= peak_rate, "initial_rate", "it must not exceed peak_rate");
    v.check(final_rate <= peak_rate, "final_rate", "it must not exceed peak_rate");
  }
};

/// The learning rate as a pure function.
class Schedule {
 public:
  /// @param width  of the model (d_model), for ScheduleKind::transformer.
  Schedule(const ScheduleConfig& config, std::int64_t width);

  /// Whether rate() looks at `progress`: such a run needs an end that is known beforehand.
  bool needs_progress() const;

  /// The rate of an update.
  /// @param update    counted from 1.
  /// @param progress  the share of the training's length that has passed when this update ends, in
  ///                  [0, 1]: update / max_updates, or time / time limit. Only linear and cosine
  ///                  look at it. The decay begins at the end of the warm-up: with
  ///                  progress = update / max_updates the rate is a function of the update alone;
  ///                  with time it depends on the machine's pace and no two runs are bitwise equal.
  /// @throws InternalError  update < 1, or progress is needed and not in [0, 1].
  double rate(std::int64_t update, double progress) const;

 private:
  ScheduleConfig config_;
  std::int64_t width_;
};

}  // namespace octavo
