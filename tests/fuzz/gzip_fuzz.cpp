// Compressed text.
#include "core/lines.h"
#include "tests/fuzz/fuzz.h"

using namespace octavo;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(fuzz::text_of(data, size));
  if (bytes.size() < 2) return 0;
  bytes[0] = '\x1f';
  bytes[1] = '\x8b';
  const fuzz::MemoryFile file(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  fuzz::may_refuse([&] {
    LineReader reader(file.path());
    // A small file may be a very long text.
    for (std::int64_t read = 0; read < (1 << 22);) {
      const auto line = reader.next();
      if (!line) break;
      read += static_cast<std::int64_t>(line->size()) + 1;
    }
  });
  return 0;
}
