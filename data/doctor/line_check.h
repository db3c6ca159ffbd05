#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace octavo {

/// What can be wrong with one line by itself.
enum class LineFault : std::uint8_t {
  empty,           ///< nothing but white space
  invalid_utf8,    ///< other faults are not looked for
  control,         ///< control characters, byte order marks, noncharacters
  separator,       ///< NEL, U+2028, a CR inside and others at which some programs end a line
  double_encoded,  ///< UTF-8 that was read as Windows-1252 or Latin-1 and encoded once more
  normal_form,     ///< not in Unicode's normal form C
  script           ///< most letters are of another script than most lines' (known only afterwards)
};
inline constexpr std::array<std::string_view, 7> kLineFaultNames{
    "empty",          "invalid UTF-8", "control characters", "line separators",
    "double-encoded", "not in NFC",    "other script"};

/// Bit of a fault in a set.
constexpr std::uint8_t bit(LineFault fault) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(fault));
}

/// What one look at a line tells.
struct LineCheck {
  std::uint8_t faults = 0;  ///< bits
  std::uint8_t script = 0;  ///< UScriptCode of most letters; USCRIPT_COMMON (0): too few to tell
  std::int32_t characters = 0;
};

/// Looks at one line, without its '\n'.
LineCheck check_line(std::string_view line);

/// The line without the faults that can be mended: control characters and byte order marks are
/// taken out, separators become spaces, what was encoded twice is decoded, the whole brought to
/// normal form C. A line that is not UTF-8 is returned as it is.
std::string mended(std::string_view line);

}  // namespace octavo
