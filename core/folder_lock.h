#pragma once

#include <filesystem>
#include <string_view>

namespace octavo {

/// Makes a folder its own against other processes, as long as it lives. FOLDER/lock names the
/// process that holds it; the system undoes the lock however that process ends.
class FolderLock {
 public:
  /// @param setting   that named the folder: messages begin with it.
  /// @param patience  seconds to wait for the holder to end: one that was killed takes a while.
  /// @throws UserError  another process holds it, or the folder can't be written.
  FolderLock(const std::filesystem::path& folder, std::string_view setting, double patience = 0);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  int descriptor_;
};

}  // namespace octavo
