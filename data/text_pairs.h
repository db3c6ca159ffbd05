#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/lines.h"
#include "data/subwords.h"

namespace octavo {

/// Two text files of which line k of one translates line k of the other.
struct TextPair {
  std::string setting;  ///< where it is named, for messages: "data.train[0]"
  std::filesystem::path source, target;
};

/// Reads a pair of files side by side, block by block.
class PairReader {
 public:
  /// @throws UserError  a file can't be opened.
  explicit PairReader(TextPair files);

  /// Reads up to `most` lines of each into `source` and `target`, whose strings are reused; returns
  /// how many, 0 at the end.
  /// @throws UserError  the files have different numbers of lines (both are named), or can't be
  ///                    read.
  std::size_t next(std::size_t most, std::vector<std::string>& source,
                   std::vector<std::string>& target);

 private:
  [[noreturn]] void unequal(bool source_ended);

  TextPair files_;
  LineReader source_, target_;
};

/// Why a pair is not used.
enum class DropReason : std::uint8_t { invalid_utf8, empty, too_long, ratio };
inline constexpr std::array<std::string_view, 4> kDropReasons{"invalid UTF-8", "empty", "too long",
                                                              "out of ratio"};

struct Dropped {
  std::int64_t pairs = 0;
  std::int64_t first_line = 0;  ///< counted from 1; 0 if none
};

/// What became of a pair of files.
struct PairCounts {
  std::int64_t lines = 0, kept = 0;
  std::int64_t source_tokens = 0, target_tokens = 0;  ///< of pairs kept, EOS not counted
  std::array<Dropped, kDropReasons.size()> dropped{};

  /// "1000 pairs, 990 kept; dropped: 8 empty (first: line 17), 2 too long (first: line 300)"
  std::string description() const;
};

/// The models of the two sides; one and the same if they are joint.
struct SubwordPair {
  std::shared_ptr<const Subwords> source, target;
  bool joint() const { return source == target; }
};

struct EncodeSettings {
  std::int64_t max_length;          ///< tokens of either side, EOS counted
  std::optional<double> max_ratio;  ///< of the longer to the shorter side, EOS counted
  bool keep_text;                   ///< also write the columns source_text and target_text
  int threads;                      ///< any number gives the same file
};

/// Encodes a pair of files into a corpus (docs/formats/corpus.md). Lines are read in blocks, so
/// memory does not grow with the files.
/// @throws UserError  see PairReader; or every pair was dropped; or the corpus can't be written.
///                    Then there is no corpus.
PairCounts encode_pairs(const TextPair& files, const SubwordPair& subwords,
                        const EncodeSettings& settings, const std::filesystem::path& corpus);

}  // namespace octavo
