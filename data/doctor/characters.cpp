#include "data/doctor/characters.h"

#include <unicode/unorm2.h>
#include <unicode/uscript.h>
#include <unicode/utf8.h>

#include <array>

namespace octavo {
namespace {

constexpr UChar32 kCharacters = 0x110000;

bool is_separator(UChar32 c) {
  return (c >= 0x0B && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool is_control(UChar32 c) {
  return (u_charType(c) == U_CONTROL_CHAR && c != '\t' && c != '\n') || c == 0xFEFF ||
         U_IS_UNICODE_NONCHAR(c);
}

std::uint8_t traits_of(UChar32 c) {
  const std::uint32_t category = U_GET_GC_MASK(c);
  std::uint8_t traits = 0;
  if (is_separator(c)) {
    traits |= kSeparator;
  } else if (is_control(c)) {
    traits |= kControl;
  }
  if ((category & (U_GC_L_MASK | U_GC_M_MASK | U_GC_ND_MASK)) != 0) traits |= kWordPart;
  if ((category & U_GC_L_MASK) != 0) traits |= kLetter;
  if (u_getIntPropertyValue(c, UCHAR_NFC_QUICK_CHECK) != UNORM_YES) traits |= kNotAlwaysNfc;
  return traits;
}

std::uint8_t script_of(UChar32 c) {
  UErrorCode status = U_ZERO_ERROR;
  const UScriptCode script = uscript_getScript(c, &status);
  if (U_FAILURE(status) || script < 0 || script > UINT8_MAX) return USCRIPT_UNKNOWN;
  const bool with_han =
      script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA || script == USCRIPT_BOPOMOFO;
  return static_cast<std::uint8_t>(with_han ? USCRIPT_HAN : script);
}

}  // namespace

CharacterTable::CharacterTable() : traits_(kCharacters), scripts_(kCharacters) {
  for (UChar32 c = 0; c < kCharacters; ++c) {
    traits_[static_cast<std::size_t>(c)] = traits_of(c);
    scripts_[static_cast<std::size_t>(c)] = script_of(c);
  }
}

const CharacterTable& CharacterTable::get() {
  static const CharacterTable table;
  return table;
}

UChar32 next_character(std::string_view text, std::int32_t& i) {
  UChar32 c = 0;
  U8_NEXT_OR_FFFD(text.data(), i, static_cast<std::int32_t>(text.size()), c);
  return c;
}

void append_character(std::string& text, UChar32 c) {
  std::array<char, U8_MAX_LENGTH> bytes{};
  std::int32_t length = 0;
  U8_APPEND_UNSAFE(bytes.data(), length, c);
  text.append(bytes.data(), static_cast<std::size_t>(length));
}

}  // namespace octavo
