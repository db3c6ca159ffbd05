#include "data/doctor/examine.h"

#include <unicode/uscript.h>
#include <xxhash.h>

#include <algorithm>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/lines.h"
#include "core/parallel.h"
#include "data/doctor/characters.h"
#include "data/doctor/test_overlap.h"

namespace octavo {
namespace {

constexpr std::size_t kBlockPairs = 1 << 14;
constexpr std::uint8_t kMendable = bit(LineFault::control) | bit(LineFault::separator) |
                                   bit(LineFault::double_encoded) | bit(LineFault::normal_form);

/// Which of the pairs is the first with its text is known when all have been read.
struct PairHash {
  std::uint64_t hash;
  std::int64_t pair;
  auto operator<=>(const PairHash&) const = default;  // NOLINT(modernize-use-nullptr): clang 14
};

class Examination {
 public:
  Examination(const DoctorFiles& files, const DoctorSettings& settings)
      : settings_(settings), source_(files.source), target_(files.target) {
    for (const std::filesystem::path& file : files.tests) {
      LineReader lines(file);
      while (const auto line = lines.next()) tests_.add(*line);
    }
  }

  DoctorReport run() {
    while (read_block()) check_block();
    count_rest();
    find_duplicates();
    settle_scripts(report_.source, &PairVerdict::source, &PairVerdict::source_script);
    settle_scripts(report_.target, &PairVerdict::target, &PairVerdict::target_script);
    count_faults();
    return std::move(report_);
  }

 private:
  bool read_block() {
    sources_.clear();
    targets_.clear();
    while (sources_.size() < kBlockPairs) {
      const auto source = source_.next(), target = target_.next();
      if (!source || !target) break;
      sources_.emplace_back(*source);
      targets_.emplace_back(*target);
    }
    return !sources_.empty();
  }

  void check_block() {
    const std::size_t first = report_.verdicts.size(), n = sources_.size();
    report_.verdicts.resize(first + n);
    hashes_.resize(first + n);
    parallel_for(settings_.threads, static_cast<std::int64_t>(n), 256,
                 [&](std::int64_t begin, std::int64_t end) {
                   TestLines::Scratch scratch;
                   for (auto i = static_cast<std::size_t>(begin); std::cmp_less(i, end); ++i)
                     check_pair(sources_[i], targets_[i], first + i, scratch);
                 });
  }

  /// Checks a line; leaves it mended, so that pairs are compared as they would be kept.
  static LineCheck check_and_mend(std::string& line) {
    LineCheck check = check_line(line);
    if ((check.faults & kMendable) != 0) {
      line = mended(line);
      if (is_blank(line)) check.faults |= bit(LineFault::empty);
    }
    return check;
  }

  void check_pair(std::string& source, std::string& target, std::size_t pair,
                  TestLines::Scratch& scratch) {
    const LineCheck s = check_and_mend(source), t = check_and_mend(target);
    PairVerdict& verdict = report_.verdicts[pair];
    verdict = {.source = s.faults,
               .target = t.faults,
               .source_script = s.script,
               .target_script = t.script};
    hashes_[pair] = {XXH3_64bits_withSeed(target.data(), target.size(),
                                          XXH3_64bits(source.data(), source.size())),
                     static_cast<std::int64_t>(pair)};
    // Of what is not even a pair of texts, nothing more is worth telling.
    if (((s.faults | t.faults) & (bit(LineFault::empty) | bit(LineFault::invalid_utf8))) != 0)
      return;
    if (source == target) verdict.pair |= bit(PairFault::copy);
    const auto [shorter, longer] = std::minmax(s.characters, t.characters);
    if (longer > settings_.max_length) verdict.pair |= bit(PairFault::too_long);
    if (longer + 10 > settings_.max_ratio * (shorter + 10)) verdict.pair |= bit(PairFault::ratio);
    if (tests_.empty()) return;
    const Overlap overlap = std::max(tests_.find(source, scratch), tests_.find(target, scratch));
    if (overlap == Overlap::exact) verdict.pair |= bit(PairFault::in_test);
    if (overlap == Overlap::near) verdict.pair |= bit(PairFault::near_test);
  }

  // block by block both files were read as far as the shorter goes, and perhaps one line further
  void count_rest() {
    while (source_.next()) {
    }
    while (target_.next()) {
    }
    report_.source.lines = source_.line_number();
    report_.target.lines = target_.line_number();
  }

  void find_duplicates() {
    std::ranges::sort(hashes_);
    for (std::size_t i = 1; i < hashes_.size(); ++i) {
      if (hashes_[i].hash != hashes_[i - 1].hash) continue;
      PairVerdict& verdict = report_.verdicts[static_cast<std::size_t>(hashes_[i].pair)];
      const bool text = ((verdict.source | verdict.target) & bit(LineFault::empty)) == 0;
      if (text) verdict.pair |= bit(PairFault::duplicate);
    }
  }

  void settle_scripts(SideReport& side, std::uint8_t PairVerdict::*faults,
                      std::uint8_t PairVerdict::*script) {
    std::array<std::int64_t, 256> lines{};
    for (const PairVerdict& verdict : report_.verdicts) ++lines[verdict.*script];
    lines[USCRIPT_COMMON] = 0;
    const auto most = std::ranges::max_element(lines);
    if (*most == 0) return;
    const auto usual = static_cast<std::uint8_t>(most - lines.begin());
    side.script = uscript_getName(static_cast<UScriptCode>(usual));
    for (PairVerdict& verdict : report_.verdicts)
      if (verdict.*script != USCRIPT_COMMON && verdict.*script != usual)
        verdict.*faults |= bit(LineFault::script);
  }

  template <std::size_t N>
  static void count_bits(std::uint8_t bits, std::int64_t line, std::array<Found, N>& found) {
    for (std::size_t i = 0; i < N; ++i)
      if ((bits >> i & 1U) != 0) found[i].add(line);
  }

  void count_faults() {
    std::int64_t line = 0;
    for (const PairVerdict& verdict : report_.verdicts) {
      ++line;
      count_bits(verdict.source, line, report_.source.faults);
      count_bits(verdict.target, line, report_.target.faults);
      count_bits(verdict.pair, line, report_.pair_faults);
    }
  }

  DoctorSettings settings_;
  LineReader source_, target_;
  TestLines tests_;
  DoctorReport report_;
  std::vector<PairHash> hashes_;
  std::vector<std::string> sources_, targets_;
};

}  // namespace

void Found::add(std::int64_t line) {
  if (std::cmp_less(lines, first.size())) first[static_cast<std::size_t>(lines)] = line;
  ++lines;
}

bool PairVerdict::drops() const {
  return pair != 0 || ((source | target) & ~kMendable) != 0;
}

DoctorReport examine(const DoctorFiles& files, const DoctorSettings& settings) {
  if (files.source == "-" || files.target == "-")
    throw UserError("the corpus can't be standard input: it may be read twice");
  return Examination(files, settings).run();
}

}  // namespace octavo
