#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"

namespace octavo {

/// What a column of a corpus holds in each row. docs/formats/corpus.md
enum class ColumnType : std::uint8_t {
  tokens16,  ///< ids below 65536, any number of them
  tokens32,  ///< ids, any number of them
  text,      ///< bytes
  number,    ///< one unsigned 64-bit number
};

struct Column {
  std::string name;
  ColumnType type;
};

/// The narrower of the two types that holds ids of this vocabulary.
constexpr ColumnType tokens_type(std::int64_t vocabulary_size) {
  return vocabulary_size <= 65536 ? ColumnType::tokens16 : ColumnType::tokens32;
}

/// Writes a corpus row by row; it appears complete at commit() or not at all. Memory stays that of
/// one block of rows.
class CorpusWriter {
 public:
  /// @throws UserError  the file can't be made.
  CorpusWriter(const std::filesystem::path& path, std::vector<Column> columns);

  /// Set every column of a row, in any order, then end the row. `column` counts from 0.
  void set_tokens(std::size_t column, std::span<const std::int32_t> ids);
  void set_text(std::size_t column, std::string_view bytes);
  void set_number(std::size_t column, std::uint64_t number);
  /// @throws UserError  the disk is full.
  void end_row();

  std::int64_t rows() const { return rows_; }
  /// Ends the file. `metadata` is kept with it: hashes, settings. @throws UserError
  void commit(const std::map<std::string, std::string>& metadata);

 private:
  struct Pending {
    std::vector<std::uint32_t> ends;  // after each row of the block, in elements
    std::string bytes;
  };
  Pending& pending(std::size_t column, bool type_fits);
  void append(std::size_t column, std::size_t count);
  void flush_block();

  AtomicFile file_;
  std::filesystem::path path_;
  std::vector<Column> columns_;
  std::vector<Pending> pending_;
  std::vector<std::vector<std::int64_t>> blocks_;  // [block][column]: where its section begins
  std::vector<std::int64_t> elements_;             // by column
  std::int64_t rows_ = 0;
};

/// A corpus, memory-mapped: processes on one host share its pages. Reading is safe from any number
/// of threads. No access can leave the file, even if it was damaged after it was opened.
class Corpus {
 public:
  /// Checks header, footer and sizes, not the content: verify() does.
  /// @throws UserError  it can't be opened, is cut short, damaged or of another version.
  explicit Corpus(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::int64_t rows() const { return rows_; }
  const std::vector<Column>& columns() const { return columns_; }
  bool has(std::string_view name) const;
  /// The number of a column. @throws UserError  there is none of that name.
  std::size_t column(std::string_view name) const;
  /// Ids, bytes or numbers in the whole column.
  std::int64_t elements(std::size_t column) const { return elements_[column]; }

  /// Ids or bytes in a row. @throws UserError  the file is damaged.
  std::int32_t length(std::size_t column, std::int64_t row) const;
  /// Appends the row's ids to `out`.
  void append_tokens(std::size_t column, std::int64_t row, std::vector<std::int32_t>& out) const;
  /// The row's bytes; they stay where they are as long as the corpus does.
  std::string_view text(std::size_t column, std::int64_t row) const;
  std::uint64_t number(std::size_t column, std::int64_t row) const;

  /// XXH3 of all rows, as 16 hexadecimal digits, as noted when the file was written.
  const std::string& content_hash() const { return content_hash_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Reads the whole file and compares. @throws UserError  a byte differs.
  void verify() const;

 private:
  struct Section {  // one column of one block
    const std::byte* begin;
    std::int64_t bytes;
  };
  struct Cell {  // one row of a column
    const std::byte* begin;
    std::uint32_t elements;
  };
  const Section& section(std::size_t column, std::int64_t row) const;
  Cell cell(std::size_t column, std::int64_t row) const;
  void read_footer(std::string_view footer);
  [[noreturn]] void damaged(const std::string& what) const;

  std::filesystem::path path_;
  MappedFile file_;
  std::vector<Column> columns_;
  std::vector<Section> sections_;  // block by block, column by column
  std::vector<std::int64_t> elements_;
  std::map<std::string, std::string> metadata_;
  std::string content_hash_;
  std::int64_t rows_ = 0, content_bytes_ = 0;
};

}  // namespace octavo
