#include "data/doctor/line_check.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uscript.h>

#include "core/error.h"
#include "core/lines.h"
#include "data/doctor/characters.h"
#include "data/doctor/double_encoding.h"

namespace octavo {
namespace {

const icu::Normalizer2& nfc() {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* normalizer = icu::Normalizer2::getNFCInstance(status);
  expect(U_SUCCESS(status) != 0, "ICU has no data for normal form C");
  return *normalizer;
}

icu::StringPiece piece(std::string_view text) {
  return {text.data(), static_cast<std::int32_t>(text.size())};
}

bool is_nfc(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  const UBool normalized = nfc().isNormalizedUTF8(piece(text), status);
  return U_SUCCESS(status) && normalized;
}

/// Counts letters by script. A line rarely has more than two scripts.
class ScriptCount {
 public:
  void add(std::uint8_t script) {
    if (script == USCRIPT_COMMON || script == USCRIPT_INHERITED) return;
    ++letters_;
    if (balance_ == 0) candidate_ = script;
    balance_ += script == candidate_ ? 1 : -1;
  }
  /// The script of more than half of the letters, of three at least; the caller counts again.
  /// Source: Boyer and Moore (1981), majority vote.
  std::uint8_t candidate() const { return letters_ >= 3 ? candidate_ : 0; }
  int letters() const { return letters_; }

 private:
  std::uint8_t candidate_ = 0;
  int balance_ = 0, letters_ = 0;
};

std::uint8_t majority_script(std::string_view line, const ScriptCount& count) {
  const CharacterTable& table = CharacterTable::get();
  const std::uint8_t candidate = count.candidate();
  if (candidate == 0) return USCRIPT_COMMON;
  int letters = 0;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(line.size());) {
    const UChar32 c = next_character(line, i);
    if ((table.traits(c) & kLetter) != 0 && table.script(c) == candidate) ++letters;
  }
  return 2 * letters > count.letters() ? candidate : static_cast<std::uint8_t>(USCRIPT_COMMON);
}

std::string without_controls(std::string_view line) {
  const CharacterTable& table = CharacterTable::get();
  std::string kept;
  kept.reserve(line.size());
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(line.size());) {
    const UChar32 c = next_character(line, i);
    const std::uint8_t traits = table.traits(c);
    if ((traits & kSeparator) != 0) {
      kept += ' ';
    } else if ((traits & kControl) == 0) {
      append_character(kept, c);
    }
  }
  return kept;
}

std::string normal_form(std::string text) {
  if (is_nfc(text)) return text;
  std::string normal;
  icu::StringByteSink<std::string> sink(&normal);
  UErrorCode status = U_ZERO_ERROR;
  nfc().normalizeUTF8(0, piece(text), sink, nullptr, status);
  expect(U_SUCCESS(status) != 0, "ICU could not normalise a line");
  return normal;
}

}  // namespace

LineCheck check_line(std::string_view line) {
  LineCheck check;
  if (is_blank(line)) check.faults |= bit(LineFault::empty);
  if (first_invalid_utf8(line) != line.size()) {
    check.faults |= bit(LineFault::invalid_utf8);
    return check;
  }
  const CharacterTable& table = CharacterTable::get();
  ScriptCount scripts;
  std::uint8_t seen = 0;
  bool ascii = true;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(line.size());) {
    const UChar32 c = next_character(line, i);
    const std::uint8_t traits = table.traits(c);
    seen |= traits;
    if (c >= 0x80) ascii = false;
    if ((traits & kLetter) != 0) scripts.add(table.script(c));
    ++check.characters;
  }
  if ((seen & kControl) != 0) check.faults |= bit(LineFault::control);
  if ((seen & kSeparator) != 0) check.faults |= bit(LineFault::separator);
  if (!ascii && has_double_encoding(line)) check.faults |= bit(LineFault::double_encoded);
  if ((seen & kNotAlwaysNfc) != 0 && !is_nfc(line)) check.faults |= bit(LineFault::normal_form);
  check.script = ascii && scripts.candidate() != 0 ? static_cast<std::uint8_t>(USCRIPT_LATIN)
                                                   : majority_script(line, scripts);
  return check;
}

std::string mended(std::string_view line) {
  std::string text(line);
  if (first_invalid_utf8(text) != text.size()) return text;
  // What one step leaves may be work for another: taking a control character out of the middle of
  // text that was encoded twice makes it visible.
  for (std::string before; before != text;) {
    before = text;
    text = normal_form(without_controls(undo_double_encoding(text)));
  }
  return text;
}

}  // namespace octavo
