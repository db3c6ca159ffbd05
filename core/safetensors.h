#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/file.h"

namespace octavo {

/// A tensor to be written: a name and a view of contiguous, row-major elements in host memory.
struct NamedTensor {
  std::string name;
  DType type;
  std::vector<std::int64_t> shape;  ///< any rank; empty: one number
  std::span<const std::byte> bytes;
};

/// Writes the tensors, in this order, as a safetensors file: straight from their memory, without a
/// copy of the whole. The caller commits `file`. docs/formats/checkpoint.md
/// @param metadata  pairs of strings, kept as "__metadata__".
/// @throws UserError      the disk is full.
/// @throws InternalError  a name comes twice or is "__metadata__", or bytes and shape disagree.
void write_safetensors(AtomicFile& file, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata);

/// A safetensors file, memory-mapped. The whole header is checked when it is opened.
class SafetensorsFile {
 public:
  struct Entry {
    std::string name;
    DType type;
    std::vector<std::int64_t> shape;
    std::int64_t begin, end;  ///< bytes of the data section
  };

  /// @throws UserError  it can't be opened or is no sound safetensors file: cut short, a header
  ///                    that is not JSON or too long, repeated names, ranges that overlap, leave
  ///                    gaps or the file, or do not fit their shapes; element types other than F64,
  ///                    F32, BF16, I64, I32 and U8.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  /// The whole file, header and all.
  std::span<const std::byte> content() const { return file_.bytes(); }
  /// In the order of their data.
  const std::vector<Entry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Null if there is none of that name.
  const Entry* find(std::string_view name) const;
  /// The elements of an entry of this file. They need not be aligned: copy them out.
  std::span<const std::byte> bytes(const Entry& entry) const;

 private:
  void read_header(std::string_view header);
  void check_ranges(std::int64_t data_bytes);
  [[noreturn]] void damaged(const std::string& what) const;

  std::filesystem::path path_;
  MappedFile file_;
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::map<std::string, std::string> metadata_;
  std::int64_t data_begin_ = 0;  // bytes before the data section
};

/// "[512, 64]"; "[]" for one number.
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace octavo
