#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/doctor/line_check.h"

namespace octavo {

/// What can be wrong with two lines together. All but line faults are looked for in the text as
/// mended() would leave it.
enum class PairFault : std::uint8_t {
  duplicate,  ///< the same pair stood before
  copy,       ///< source = target
  ratio,      ///< one side is much longer
  too_long,   ///< a side has too many characters
  in_test,    ///< a side is a line of a test set
  near_test   ///< a side is nearly one (TestLines)
};
inline constexpr std::array<std::string_view, 6> kPairFaultNames{
    "duplicates", "copies (source = target)", "out of ratio",
    "too long",   "in the test set",          "nearly in the test set"};
constexpr std::uint8_t bit(PairFault fault) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(fault));
}

struct DoctorFiles {
  std::filesystem::path source, target;
  std::vector<std::filesystem::path> tests;  ///< of either language
};

struct DoctorSettings {
  std::int64_t max_length = 2000;  ///< characters of a side
  /// Of (characters of the longer side + 10) to (of the shorter + 10): short lines may differ more.
  double max_ratio = 3;
  int threads = 1;  ///< any number gives the same report
};

/// How often something was found, and where first (lines counted from 1; 0: no such line).
struct Found {
  std::int64_t lines = 0;
  std::array<std::int64_t, 3> first{};
  void add(std::int64_t line);
};

/// What is wrong with one pair: bits of LineFault and PairFault.
struct PairVerdict {
  std::uint8_t source = 0, target = 0, pair = 0;
  std::uint8_t source_script = 0, target_script = 0;  ///< as LineCheck::script

  /// Whether cleaning drops it: what is left is wrong in a way that can be mended, or in no way.
  bool drops() const;
};

struct SideReport {
  std::int64_t lines = 0;
  std::string script;  ///< that most lines are written in, "Latin"; empty if there are no letters
  std::array<Found, kLineFaultNames.size()> faults;
};

struct DoctorReport {
  SideReport source, target;
  std::array<Found, kPairFaultNames.size()> pair_faults;
  std::vector<PairVerdict> verdicts;  ///< of every pair: as many as the shorter file has lines
};

/// Looks at a pair of files. Memory: about 32 bytes a pair, and the test sets.
/// @throws UserError  a file can't be read, or one is standard input (cleaning reads it again).
DoctorReport examine(const DoctorFiles& files, const DoctorSettings& settings);

/// What cleaning did.
struct CleanedCounts {
  std::int64_t kept = 0, changed = 0, dropped = 0;  ///< pairs; changed ones are kept, too
};

/// Writes the pair without what is wrong, under the files' own names (without .gz) into `folder`,
/// and beside it doctor.jsonl with every dropped or changed pair (docs/formats/doctor_log.md).
/// @throws UserError  the files have unequal numbers of lines, or changed since `report`, or would
///                    be overwritten, or the folder can't be written.
CleanedCounts clean(const DoctorFiles& files, const DoctorReport& report,
                    const std::filesystem::path& folder);

}  // namespace octavo
