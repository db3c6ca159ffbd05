// Lines of text, and what is done with every line of a corpus.
#include <algorithm>

#include "core/lines.h"
#include "data/doctor/line_check.h"
#include "tests/fuzz/fuzz.h"

using namespace octavo;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  if (bytes.starts_with("\x1f\x8b")) return 0;  // gzip has a target of its own
  const fuzz::MemoryFile file(data, size);
  LineReader reader(file.path());
  std::string joined;
  while (const auto line = reader.next()) {
    joined += *line;
    fuzz::require(is_valid_utf8(replace_invalid_utf8(*line)), "replaced text is UTF-8");
    if (!is_valid_utf8(*line)) continue;
    check_line(*line);
    const std::string once = mended(*line);
    fuzz::require(mended(once) == once, "what was mended needs no mending");
  }
  const auto ends = std::count(bytes.begin(), bytes.end(), '\n');
  const bool open_end = !bytes.empty() && bytes.back() != '\n';
  fuzz::require(reader.line_number() == ends + (open_end ? 1 : 0), "lines end at \\n only");
  const auto length = [](std::string_view text) {
    return std::count_if(text.begin(), text.end(), [](char c) { return c != '\n' && c != '\r'; });
  };
  fuzz::require(length(joined) == length(bytes), "no character is lost");
  return 0;
}
