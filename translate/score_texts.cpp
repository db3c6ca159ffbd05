#include "translate/score_texts.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/lines.h"

namespace octavo {
namespace {

constexpr std::size_t kWindowPairs = 2048;

/// One of the two texts, line by line as ids.
class Side {
 public:
  Side(const std::string& path, const Subwords& subwords, std::int64_t max_length)
      : name_(path == "-" ? "standard input" : path),
        reader_(path),
        encoder_(subwords),
        eos_(subwords.vocabulary().eos()),
        max_length_(max_length) {}

  /// False at the end.
  bool next(std::vector<std::int32_t>& ids) {
    const auto line = reader_.next();
    if (!line) return false;
    ids.clear();
    if (is_valid_utf8(*line)) {
      encoder_.encode(*line, ids);
    } else {
      encoder_.encode(replace_invalid_utf8(*line), ids);
    }
    ids.push_back(eos_);
    if (static_cast<std::int64_t>(ids.size()) > max_length_) {
      throw UserError(fmt::format(
          "{}:{}: the line has {} tokens, the model takes at most {}. Leave the pair out: its "
          "probability can't be had in parts",
          name_, reader_.line_number(), ids.size(), max_length_));
    }
    return true;
  }

  const std::string& name() const { return name_; }
  /// All lines, those not read yet included; reads to the end.
  std::int64_t count_all() {
    while (reader_.next()) {
    }
    return reader_.line_number();
  }

 private:
  std::string name_;
  LineReader reader_;
  SubwordEncoder encoder_;
  std::int32_t eos_;
  std::int64_t max_length_;
};

void refuse_unequal(const std::string& source, std::int64_t source_lines, const std::string& target,
                    std::int64_t target_lines) {
  if (source_lines == target_lines) return;
  throw UserError(fmt::format(
      "{} has {} lines but {} has {}. Line k of one must translate line k of the other, so they "
      "must match. Compare 'wc -l' before and after each step that made them",
      source, source_lines, target, target_lines));
}

bool readable_twice(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

}  // namespace

ScoreCounts score_texts(const std::string& source_path, const std::string& target_path,
                        const TextScoring& scoring,
                        const std::function<void(std::string_view)>& write) {
  const auto open_source = [&] { return Side(source_path, scoring.source, scoring.max_length); };
  const auto open_target = [&] { return Side(target_path, scoring.target, scoring.max_length); };
  if (readable_twice(source_path) && readable_twice(target_path)) {
    refuse_unequal(source_path, open_source().count_all(), target_path, open_target().count_all());
  }
  Side source = open_source(), target = open_target();
  ScoreCounts counts;
  std::vector<IdPair> window;
  std::string out;
  for (bool more = true; more;) {
    window.clear();
    while (more && window.size() < kWindowPairs) {
      IdPair pair;
      const bool has_source = source.next(pair.source), has_target = target.next(pair.target);
      more = has_source && has_target;
      if (has_source != has_target) {
        refuse_unequal(source.name(), source.count_all(), target.name(), target.count_all());
      }
      if (!more) break;
      counts.target_tokens += static_cast<std::int64_t>(pair.target.size());
      window.push_back(std::move(pair));
    }
    out.clear();
    for (const double score : scoring.score(window)) {
      if (!std::isfinite(score)) {
        throw UserError(
            fmt::format("pair {} gets no probability but {}: the model's weights are "
                        "damaged or never became numbers. Take another checkpoint",
                        counts.pairs + 1, score));
      }
      ++counts.pairs;
      counts.log_probability += score;
      fmt::format_to(std::back_inserter(out), "{:.6f}\n", score);
    }
    if (!out.empty()) write(out);
  }
  return counts;
}

}  // namespace octavo
