#include "trainer/progress_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

namespace octavo {
namespace {

/// A piece of the line; 0 is the most important.
struct Piece {
  int importance;
  std::string text;
};

std::string updates_text(const Progress& p) {
  std::string text = with_commas(p.report.update);
  if (p.max_updates) text += "/" + with_commas(*p.max_updates);
  return text;
}

std::string percent(double share) {
  return std::isfinite(share) ? fmt::format("{:.0f}%", 100 * share) : "?%";
}

/// In the order in which they are shown.
std::vector<Piece> pieces(const Progress& p) {
  const TrainingReport& r = p.report;
  std::vector<Piece> all;
  if (p.share) all.push_back({2, percent(*p.share)});
  all.push_back({0, "update " + updates_text(p)});
  all.push_back({5, fmt::format("epoch {}", r.epoch + 1)});
  all.push_back({1, fmt::format("loss {:.3f}", r.loss)});
  all.push_back({6, "ppl " + short_number(r.perplexity())});
  all.push_back({9, fmt::format("rate {:.2e}", r.rate)});
  all.push_back({8, fmt::format("norm {:.2f}", r.gradient_norm)});
  if (r.skipped > 0) all.push_back({3, fmt::format("{} skipped", r.skipped)});
  all.push_back({7, fmt::format("src {}/s tgt {}/s", short_number(r.source_tokens_per_second),
                                short_number(r.target_tokens_per_second))});
  all.push_back(
      {9, fmt::format("wait data {} ranks {}", percent(r.data_wait), percent(r.collective_wait))});
  all.push_back({11, fmt::format("{} of peak", percent(r.flop_utilisation))});
  if (const std::optional<double> left = seconds_left(p))
    all.push_back({2, short_duration(*left) + " left"});
  return all;
}

/// "[#####-----]"
std::string bar(double share, int columns) {
  const int inside = columns - 2;
  const int full = std::clamp(static_cast<int>(std::floor(share * inside)), 0, inside);
  return fmt::format("[{:#>{}}{:->{}}]", "", full, "", inside - full);
}

}  // namespace

std::string short_number(double value) {
  constexpr std::array<std::string_view, 5> kUnits{"", "k", "M", "G", "T"};
  if (!std::isfinite(value)) return fmt::format("{}", value);
  std::size_t unit = 0;
  // From 999.5 on, three digits would round to 1000.
  while (std::abs(value) >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  const double size = std::abs(value);
  const int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  std::string digits = fmt::format("{:.{}f}", value, decimals);
  if (unit == 0 && value == std::floor(value)) digits = fmt::format("{:.0f}", value);
  return digits + std::string(kUnits[unit]);
}

std::string short_duration(double seconds) {
  if (!(seconds < 1e10)) return "?";
  const auto s = static_cast<std::int64_t>(std::max(0.0, std::round(seconds)));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
  return fmt::format("{}d{:02}h", s / 86400, s / 3600 % 24);
}

std::string with_commas(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  for (auto i = static_cast<std::int64_t>(digits.size()) - 3; i > (value < 0 ? 1 : 0); i -= 3)
    digits.insert(static_cast<std::size_t>(i), 1, ',');
  return digits;
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", with_commas(count), noun, count == 1 ? "" : "s");
}

std::optional<double> seconds_left(const Progress& p) {
  if (!p.share || !(*p.share > 0) || !(p.report.seconds > 0)) return std::nullopt;
  return p.report.seconds * (1 - std::min(1.0, *p.share)) / *p.share;
}

std::string plain_line(const Progress& progress) {
  std::string line;
  for (const Piece& piece : pieces(progress)) line += (line.empty() ? "" : " | ") + piece.text;
  return line;
}

std::string live_line(const Progress& progress, int width) {
  constexpr int kLeastBar = 8, kMostBar = 32, kBarImportance = 4, kGap = 2;
  std::vector<Piece> all = pieces(progress);
  if (progress.share) all.insert(all.begin(), {kBarImportance, std::string(kLeastBar, ' ')});
  const auto columns = [&] {
    int sum = -kGap;
    for (const Piece& piece : all) sum += static_cast<int>(piece.text.size()) + kGap;
    return sum;
  };
  while (all.size() > 1 && columns() > width)
    all.erase(std::ranges::max_element(all, {}, &Piece::importance));
  if (progress.share && all.front().importance == kBarImportance)
    all.front().text = bar(*progress.share, std::min(kLeastBar + width - columns(), kMostBar));
  std::string line;
  for (const Piece& piece : all) line += (line.empty() ? "" : "  ") + piece.text;
  return line.substr(0, static_cast<std::size_t>(std::max(0, width)));
}

}  // namespace octavo
