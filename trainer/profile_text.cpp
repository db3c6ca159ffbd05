#include "trainer/profile_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/progress_text.h"

namespace octavo {
namespace {

using Row = std::pair<std::string_view, Profile::Entry>;

double per_second(std::int64_t amount, double seconds) {
  return seconds > 0 ? static_cast<double>(amount) / seconds : 0;
}

/// Seconds that these ops would take if nothing but the machine's limits held them up.
double least_seconds(const Profile::Entry& e, const MachineLimits& limits) {
  return std::max(static_cast<double>(e.flops) / limits.flops,
                  static_cast<double>(e.bytes) / limits.bytes);
}

class Table {
 public:
  Table(double seconds, const MachineLimits& limits) : seconds_(seconds), limits_(limits) {
    fmt::format_to(std::back_inserter(text_), "{:<22}{:>12}{:>10}{:>9}{:>10}{:>8}{:>10}\n", "op",
                   "calls", "seconds", "of all", "GFLOP/s", "GB/s", "of limit");
  }
  void op(const Row& row) {
    const Profile::Entry& e = row.second;
    const double least = least_seconds(e, limits_);
    fmt::format_to(std::back_inserter(text_),
                   "{:<22}{:>12}{:>10.3f}{:>8.1f}%{:>10.1f}{:>8.1f}{:>9.0f}%\n", row.first,
                   with_commas(e.calls), e.seconds, share(e.seconds),
                   per_second(e.flops, e.seconds) / 1e9, per_second(e.bytes, e.seconds) / 1e9,
                   e.seconds > 0 ? 100 * least / e.seconds : 0.0);
  }
  void wait(std::string_view name, double seconds) {
    fmt::format_to(std::back_inserter(text_), "{:<22}{:>12}{:>10.3f}{:>8.1f}%\n", name, "", seconds,
                   share(seconds));
  }
  std::string take() { return std::move(text_); }

 private:
  double share(double seconds) const { return seconds_ > 0 ? 100 * seconds / seconds_ : 0; }

  double seconds_;
  MachineLimits limits_;
  std::string text_;
};

}  // namespace

std::string profile_text(const Profile& profile, const UpdateTimes& times,
                         const MachineLimits& limits) {
  std::vector<Row> rows(profile.entries().begin(), profile.entries().end());
  std::ranges::sort(rows,
                    [](const Row& a, const Row& b) { return a.second.seconds > b.second.seconds; });
  Table table(times.seconds, limits);
  Profile::Entry all;
  for (const Row& row : rows) {
    table.op(row);
    all.calls += row.second.calls;
    all.flops += row.second.flops;
    all.bytes += row.second.bytes;
    all.seconds += row.second.seconds;
  }
  table.op({"all ops", all});
  table.wait("wait for data", times.data_seconds);
  table.wait("wait for ranks", times.collective_seconds);
  table.wait("all else",
             times.seconds - all.seconds - times.data_seconds - times.collective_seconds);
  return fmt::format(
      "rank 0: {} in {:.3f} seconds; the machine's limits: {:.0f} GFLOP/s of a large product, "
      "{:.1f} GB/s of a copy\n{}",
      counted(times.updates, "update"), times.seconds, limits.flops / 1e9, limits.bytes / 1e9,
      table.take());
}

}  // namespace octavo
