#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/setting_values.h"

namespace octavo {

/// How a line is cut into the words that BLEU counts; names and rules are those of sacreBLEU.
///   13a   mteval-v13a.pl: undoes four entities, splits ASCII punctuation off
///   intl  mteval-v14.pl: splits Unicode punctuation and symbols off, except between digits
///   chars every character that isn't white space
///   none  split at white space only
enum class BleuTokenize : std::uint8_t { v13a, intl, chars, none };

template <>
struct EnumNames<BleuTokenize> {
  static constexpr std::pair<BleuTokenize, std::string_view> values[] = {
      {BleuTokenize::v13a, "13a"},
      {BleuTokenize::intl, "intl"},
      {BleuTokenize::chars, "char"},
      {BleuTokenize::none, "none"},
  };
};

/// Cuts lines into tokens exactly as sacreBLEU 2.x does: trailing white space removed, lower-cased
/// if asked, tokenized, split at Unicode white space.
///
/// Classes of characters come from ICU, so characters younger than its Unicode version count as
/// letters. Lower-casing is the full, language-neutral mapping of Unicode (final sigma, "İ" to two
/// code points), which is what Python's str.lower does. Ill-formed UTF-8 counts as U+FFFD.
class BleuTokenizer {
 public:
  BleuTokenizer(BleuTokenize tokenize, bool lowercase);

  /// Tokens of one line (no '\n' inside). Valid until the next call.
  std::span<const std::string_view> operator()(std::string_view line);

 private:
  BleuTokenize tokenize_;
  bool lowercase_;
  std::string bytes_, next_bytes_;       // the line after each pass of a tokenizer
  std::u32string points_, next_points_;  // the same for intl, one element a code point
  std::vector<std::string_view> tokens_;

  void pass_13a(std::string_view line);
  void pass_intl(std::string_view line);
  void split(std::string_view text);
  void split_chars(std::string_view text);
};

}  // namespace octavo
