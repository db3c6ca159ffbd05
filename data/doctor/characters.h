#pragma once

#include <unicode/uchar.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

/// What a character means to whoever looks at a corpus; bits of a set.
enum CharacterTrait : std::uint8_t {
  kControl = 1,    ///< C0 and C1 without white space, a byte order mark, a noncharacter
  kSeparator = 2,  ///< ends a line for some programs: CR, VT, FF, FS, GS, RS, NEL, U+2028, U+2029
  kWordPart = 4,   ///< a letter, a mark or a digit
  kLetter = 8,     ///< a letter
  kNotAlwaysNfc = 16  ///< text with it may not be in normal form C
};

/// Traits and scripts of all characters, in tables, because every character of a corpus is asked
/// for. Classes come from ICU. Built at the first use; safe to share.
class CharacterTable {
 public:
  static const CharacterTable& get();

  std::uint8_t traits(UChar32 c) const { return traits_[static_cast<std::size_t>(c)]; }
  /// A UScriptCode; Hiragana, Katakana and Bopomofo are written together with Han and count as it.
  std::uint8_t script(UChar32 c) const { return scripts_[static_cast<std::size_t>(c)]; }

 private:
  CharacterTable();
  std::vector<std::uint8_t> traits_, scripts_;
};

/// One character at text[i]; i moves behind it. Ill-formed bytes give U+FFFD.
UChar32 next_character(std::string_view text, std::int32_t& i);

void append_character(std::string& text, UChar32 c);

}  // namespace octavo
