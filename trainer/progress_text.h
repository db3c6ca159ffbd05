#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/reports.h"

namespace octavo {

/// What the progress display tells.
struct Progress {
  TrainingReport report;
  std::optional<std::int64_t> max_updates = {};
  std::optional<double> share = {};  ///< of the training's length that is over, if that is known
};

/// "7", "950", "3.25k", "12.3M": three digits.
std::string short_number(double value);
/// "7s", "12m05s", "3h07m", "2d04h"
std::string short_duration(double seconds);
/// "1,234,567"
std::string with_commas(std::int64_t value);
/// "1 rank", "2 ranks"
std::string counted(std::int64_t count, std::string_view noun);

/// Time left at the pace so far; nothing when no pace is known yet.
std::optional<double> seconds_left(const Progress& progress);

/// Everything, on one line of any length.
std::string plain_line(const Progress& progress);

/// One line of at most `width` columns, ASCII, with a bar that takes what is left over. Where it is
/// narrow, what matters least is left out.
std::string live_line(const Progress& progress, int width);

}  // namespace octavo
