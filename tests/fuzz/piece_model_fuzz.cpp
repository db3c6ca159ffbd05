// SentencePiece models, and text that is cut with what was read.
#include "data/subwords.h"
#include "tests/fuzz/fuzz.h"

using namespace octavo;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::may_refuse([&] {
    const Subwords subwords(fuzz::text_of(data, size), "input");
    SubwordEncoder encoder(subwords);
    std::vector<std::int32_t> ids;
    for (const std::string_view text : {"", " a  bc", "Grüße, \xe6\xbc\xa2\xe5\xad\x97 ", "</s>"}) {
      ids.clear();
      encoder.encode(text, ids);
      for (const std::int32_t id : ids)
        fuzz::require(id >= 0 && id < subwords.vocabulary().size(), "ids are of the vocabulary");
      fuzz::require(subwords.decode(ids) == text, "decoding returns what was encoded");
    }
  });
  return 0;
}
