#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"

/// Shared by the fuzz targets: one for each reader of what comes from outside. launch/fuzz.sh feeds
/// them mutations; the tests feed them the inputs that are kept in tests/fuzz/inputs.
namespace octavo::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Runs a reader. It may refuse its input with a UserError; anything else ends the process.
template <typename F>
void may_refuse(F&& read) {
  try {
    read();
  } catch (const UserError&) {  // what a reader owes its user
  }
}

/// Ends the process unless `holds`.
void require(bool holds, const char* what);

/// A file in memory, for readers that take a path.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();
  std::string path() const;

 private:
  int descriptor_;
};

}  // namespace octavo::fuzz
