#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/settings.h"
#include "data/subwords.h"
#include "translate/sentence_beam.h"

namespace octavo {

/// What happens to a line of more tokens than the model takes. split: it is cut at the ends of
/// sentences or words, the parts are translated apart and joined; refuse: an error names it.
enum class LongLines : unsigned char { split, refuse };

template <>
struct EnumNames<LongLines> {
  static constexpr std::array<std::pair<LongLines, std::string_view>, 2> values{
      {{LongLines::split, "split"}, {LongLines::refuse, "refuse"}}};
};

/// A line's translation.
struct TextTranslation {
  std::string text;  ///< valid UTF-8 without '\n'
  double score = 0;  ///< of a line in parts: the sum of theirs
};

/// Text in, text out, line by line: one line gives one line, whatever it holds.
///
/// An empty line gives an empty line. Ill-formed UTF-8 is replaced by U+FFFD, with a warning.
/// NUL, CR, U+2028 and their like are ordinary characters inside a line.
class Translator {
 public:
  /// For each source, which ends with EOS, its translations, best first, one at least:
  /// BatchTranslator::translate with a Pass.
  using TranslateIds = std::function<std::vector<std::vector<Translation>>(
      std::span<const std::vector<std::int32_t>> sources)>;

  struct Settings {
    LongLines long_lines;
    std::int64_t max_source;  ///< tokens of the longest source, EOS counted
  };
  /// The subword models must outlive the translator.
  /// @throws UserError  max_source is too small to split lines.
  Translator(const Subwords& source, const Subwords& target, const Settings& settings,
             TranslateIds translate_ids);

  /// @param first_line  number of lines[0], for messages.
  /// @return for each line its translations, best first, one at least.
  /// @throws UserError  a line is too long and to be refused; names it.
  std::vector<std::vector<TextTranslation>> translate(std::span<const std::string> lines,
                                                      std::int64_t first_line);

  /// What has been done so far.
  struct Counts {
    std::int64_t lines = 0;
    std::int64_t source_tokens = 0, target_tokens = 0;  ///< EOS counted
    std::int64_t split = 0;                             ///< lines translated in parts
    std::int64_t ill_formed = 0;                        ///< lines with bytes that were no UTF-8
    std::int64_t unfinished = 0;  ///< translations (or parts) that reached the length limit
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Line {  // its parts among all sources
    std::size_t begin, end;
    std::vector<std::string_view> joints;
  };
  Line add(const std::string& line, std::int64_t number);
  void add_in_parts(std::string_view text, std::int64_t number, std::int64_t tokens, Line& line);
  std::vector<std::int32_t> encode(std::string_view text);
  std::vector<TextTranslation> join(const Line& line,
                                    std::span<const std::vector<Translation>> parts) const;

  const Subwords& target_;
  SubwordEncoder encoder_;
  std::int32_t source_eos_;
  Settings settings_;
  TranslateIds translate_ids_;
  std::vector<std::vector<std::int32_t>> sources_;
  Counts counts_;
};

}  // namespace octavo
