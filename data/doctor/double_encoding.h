#pragma once

#include <string>
#include <string_view>

namespace octavo {

/// UTF-8 that somebody took for Windows-1252 (or Latin-1) and encoded to UTF-8 once more: "fÃ¼r"
/// for "für", "donâ€™t" for "don’t".
///
/// A run of characters beyond ASCII counts if its bytes in Windows-1252 are well-formed UTF-8 and
/// it is no likely text by itself: it has two or more such sequences, or one whose first byte is
/// that of Western letters and punctuation (Â, Ã, â). A single capital before a closing quotation
/// mark (as in German “MENÜ“) is left alone.
bool has_double_encoding(std::string_view line);

/// The line as it was meant, decoded as often as it takes. `line` must be valid UTF-8.
std::string undo_double_encoding(std::string_view line);

}  // namespace octavo
