#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/settings.h"
#include "trainer/progress_text.h"

namespace octavo {

/// live: one line on stderr that is drawn again and again; plain: a line in the log per report.
enum class ProgressStyle : std::uint8_t { live, plain };

template <>
struct EnumNames<ProgressStyle> {
  static constexpr std::array<std::pair<ProgressStyle, std::string_view>, 2> values{
      {{ProgressStyle::live, "live"}, {ProgressStyle::plain, "plain"}}};
};

class LiveLine;

/// Shows how a training goes. Rank 0 only, one object at a time.
///
/// While a live display exists, what spdlog says appears above the line: the default logger's sink
/// is wrapped. So set_up_log() must not be called meanwhile.
class ProgressDisplay {
 public:
  explicit ProgressDisplay(ProgressStyle style);
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;
  /// Leaves the last line standing and gives the log back.
  ~ProgressDisplay();

  /// Whether update() would draw: what it shows need not be computed otherwise.
  bool due() const;
  /// Between reports: draws the live line anew, at most five times a second.
  void update(const Progress& progress);
  /// A report is complete: a line in the log, or the live line, as often as with update().
  void report(const Progress& progress);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(const Progress& progress);

  std::shared_ptr<LiveLine> live_;  // null in plain style
  Clock::time_point drawn_{};
  std::optional<Progress> waiting_{};  // a report that came too soon to be drawn; the last one is
};

/// Columns of the terminal behind a file descriptor. Where nobody knows (under mpirun it is a pipe)
/// the environment's COLUMNS counts, else 100. A line that ends in the last column would scroll on
/// some terminals, so one less is returned.
int terminal_columns(int descriptor);

}  // namespace octavo
