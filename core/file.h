#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace octavo {

/// Reads a whole file. @throws UserError  it can't be opened or read.
std::string read_file(const std::filesystem::path& path);

/// 64-bit XXH3 of bytes that come piece by piece.
class HashState {
 public:
  HashState();
  ~HashState();
  HashState(const HashState&) = delete;
  HashState& operator=(const HashState&) = delete;
  void update(std::string_view bytes);
  /// 16 hexadecimal digits.
  std::string digest() const;

 private:
  void* state_;  // XXH3_state_t
};

/// A file that appears complete or not at all: writes go to "PATH.tmp.PID", commit() flushes it to
/// the disk (fsync), renames it and flushes the folder. Without commit() nothing is left behind.
/// Every write is checked: a full disk is an error when its first buffer is flushed or in commit(),
/// naming the path; the temporary file is gone by then and the object is of no more use.
class AtomicFile {
 public:
  /// @throws UserError  the folder does not exist or can't be written, or `path` is there already
  ///                    and is no ordinary file (a folder, a device).
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  /// @throws UserError  the system refuses (disk full, quota, size limit).
  void write(std::string_view bytes);
  void write(std::span<const std::byte> bytes);
  /// Bytes written so far.
  std::int64_t size() const { return size_; }
  /// 64-bit XXH3 of the bytes written so far, as 16 hexadecimal digits.
  std::string hash() const;
  /// @throws UserError  flushing or renaming failed; the old file, if any, is untouched.
  void commit();

 private:
  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
  HashState hash_;
  std::string buffer_;

  void flush();
  /// Closes and removes the temporary file; only reports what goes wrong.
  void discard() noexcept;
  [[noreturn]] void fail(int error_number);
};

/// Replaces a file's contents in one step (AtomicFile). @throws UserError
void write_file(const std::filesystem::path& path, std::string_view contents);

/// fsync of a folder, so that renames inside it survive a power cut. @throws UserError
void sync_folder(const std::filesystem::path& folder);

/// 64-bit XXH3 of a file's bytes, as 16 hexadecimal digits. @throws UserError
std::string hash_file(const std::filesystem::path& path);
/// The same of bytes in memory.
std::string hash_bytes(std::string_view bytes);

/// A file mapped read-only; processes on one host share its pages.
class MappedFile {
 public:
  /// @throws UserError  it can't be opened or mapped. An empty file is an empty span.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace octavo
