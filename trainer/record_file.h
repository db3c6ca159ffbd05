#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace octavo {

/// A log that grows by whole records and whose troubles do not stop a training.
///
/// Each record goes to the system in one call, so it survives the death of the process. A record
/// that can't be written whole (a full disk) is taken back, so that the file stays sound; the user
/// is told at once how to mend it, training goes on, and the log continues with the first record
/// that fits again. What is missing is counted and reported at that point or at the end.
class RecordFile {
 public:
  /// Opens a file to append to; makes it if there is none.
  /// @throws UserError  that fails: at the start somebody is there to mend it.
  explicit RecordFile(std::filesystem::path path);
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;
  ~RecordFile();

  /// @returns whether it was written.
  bool append(std::string_view record);
  const std::filesystem::path& path() const { return path_; }

 private:
  /// 0, or the error number.
  int try_append(std::string_view record);

  std::filesystem::path path_;
  int descriptor_;
  std::int64_t size_ = 0;  // bytes of whole records
  std::int64_t lost_ = 0;  // records since the last one that was written
  bool torn_ = false;      // part of a record is in the file and could not be taken back
};

}  // namespace octavo
