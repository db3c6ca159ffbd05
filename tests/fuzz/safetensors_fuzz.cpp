// Weights: every byte of every tensor of what could be opened.
#include "core/safetensors.h"
#include "tests/fuzz/fuzz.h"

using namespace octavo;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile file(data, size);
  fuzz::may_refuse([&] {
    const SafetensorsFile tensors(file.path());
    std::size_t bytes = 0;
    unsigned sum = 0;
    for (const SafetensorsFile::Entry& entry : tensors.entries()) {
      fuzz::require(tensors.find(entry.name) == &entry, "names are unique");
      for (const std::byte byte : tensors.bytes(entry)) sum += static_cast<unsigned>(byte);
      bytes += tensors.bytes(entry).size();
    }
    fuzz::require(bytes <= size, "tensors do not overlap");
    fuzz::require(sum <= 255 * bytes, "every byte can be read");
  });
  return 0;
}
