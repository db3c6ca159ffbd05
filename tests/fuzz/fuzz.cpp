#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace octavo::fuzz {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

MemoryFile::MemoryFile(const std::uint8_t* data, std::size_t size)
    : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
  require(descriptor_ >= 0, "memory for a file");
  while (size > 0) {
    const ssize_t n = write(descriptor_, data, size);
    require(n > 0, "memory for a file's bytes");
    data += n;
    size -= static_cast<std::size_t>(n);
  }
}

MemoryFile::~MemoryFile() {
  close(descriptor_);
}

std::string MemoryFile::path() const {
  return "/proc/self/fd/" + std::to_string(descriptor_);
}

}  // namespace octavo::fuzz
