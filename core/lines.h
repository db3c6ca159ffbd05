#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

/// Reads a text file line by line. Lines end at byte '\n' only; one final '\r' is stripped; NEL,
/// U+2028, VT, FF and a lone CR are ordinary characters. A last line without '\n' counts; an empty
/// file has no lines. gzip is recognised by its first bytes and read as is. "-" is standard input.
class LineReader {
 public:
  /// @throws UserError  the file can't be opened.
  explicit LineReader(const std::filesystem::path& path);
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;
  ~LineReader();

  /// The next line, valid until the next call; nothing at the end.
  /// @throws UserError  reading failed or the gzip stream is damaged or cut short.
  std::optional<std::string_view> next();
  /// Whether a line, or the end, can be had without waiting longer than this. Of a line whose
  /// beginning is there the rest may yet have to be waited for.
  bool ready(int milliseconds);
  /// Lines returned so far: the number of the line last returned, counted from 1.
  std::int64_t line_number() const { return line_number_; }

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
  std::string line_;
  std::int64_t line_number_ = 0;
};

/// All lines of a file. @throws UserError
std::vector<std::string> read_lines(const std::filesystem::path& path);

/// Whether a line is empty or has nothing but spaces, tabs and the like.
bool is_blank(std::string_view line);

/// Whether `text` is well-formed UTF-8 (no surrogates, no overlong forms, at most U+10FFFF).
bool is_valid_utf8(std::string_view text);
/// Byte offset of the first ill-formed sequence; text.size() if there is none.
std::size_t first_invalid_utf8(std::string_view text);
/// `text` with U+FFFD in place of every byte that belongs to no well-formed sequence.
std::string replace_invalid_utf8(std::string_view text);

}  // namespace octavo
