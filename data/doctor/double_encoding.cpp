#include "data/doctor/double_encoding.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/lines.h"
#include "data/doctor/characters.h"

namespace octavo {
namespace {

// Characters of Windows-1252 for the bytes 0x80 .. 0x9F; 0: the byte has none.
constexpr std::array<char16_t, 32> kWindows1252 = {
    0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017D, 0,      0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

/// The byte from 0x80 that Windows-1252 or Latin-1 shows as this character.
std::optional<char> byte_of(UChar32 c) {
  if (c >= 0x80 && c <= 0xFF) return static_cast<char>(c);
  for (std::size_t i = 0; i < kWindows1252.size(); ++i)
    if (c != 0 && kWindows1252[i] == c) return static_cast<char>(0x80 + i);
  return std::nullopt;
}

bool is_quotation_mark(char byte) {
  const auto b = static_cast<unsigned char>(byte);
  return (b >= 0x91 && b <= 0x94) || b == 0xAB || b == 0xBB;
}

// Whether the bytes of a run are text that was encoded twice, see the header.
bool is_double_encoded(std::string_view bytes, char before) {
  if (bytes.size() < 2 || !is_valid_utf8(bytes)) return false;
  std::size_t sequences = 0;
  for (const char byte : bytes)
    if ((static_cast<unsigned char>(byte) & 0xC0) != 0x80) ++sequences;
  if (sequences > 1) return true;
  const auto lead = static_cast<unsigned char>(bytes.front());
  if (lead != 0xC2 && lead != 0xC3 && lead != 0xE2) return false;
  const bool capitals = before >= 'A' && before <= 'Z';
  return !(capitals && bytes.size() == 2 && is_quotation_mark(bytes.back()));
}

/// Calls keep(text) for what stands outside such runs and decode(bytes) for each run.
template <typename Keep, typename Decode>
void for_each_run(std::string_view line, Keep keep, Decode decode) {
  std::string bytes;
  std::int32_t run_begin = 0;
  char before = ' ';
  const auto end_run = [&](std::int32_t end) {
    const std::string_view text =
        line.substr(static_cast<std::size_t>(run_begin), static_cast<std::size_t>(end - run_begin));
    if (is_double_encoded(bytes, before)) {
      decode(std::string_view(bytes));
    } else {
      keep(text);
    }
    bytes.clear();
  };
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(line.size());) {
    const std::int32_t begin = i;
    const UChar32 c = next_character(line, i);
    if (const std::optional<char> byte = byte_of(c)) {
      if (bytes.empty()) run_begin = begin;
      bytes += *byte;
      continue;
    }
    if (!bytes.empty()) end_run(begin);
    keep(line.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(i - begin)));
    before = c < 0x80 ? static_cast<char>(c) : ' ';
  }
  if (!bytes.empty()) end_run(static_cast<std::int32_t>(line.size()));
}

}  // namespace

bool has_double_encoding(std::string_view line) {
  bool found = false;
  for_each_run(
      line, [](std::string_view) {}, [&](std::string_view) { found = true; });
  return found;
}

std::string undo_double_encoding(std::string_view line) {
  std::string text(line);
  while (has_double_encoding(text)) {
    std::string decoded;
    const auto append = [&](std::string_view piece) { decoded += piece; };
    for_each_run(text, append, append);
    text = std::move(decoded);
  }
  return text;
}

}  // namespace octavo
