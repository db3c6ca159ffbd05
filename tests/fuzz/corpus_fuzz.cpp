// Binary corpora: every cell of what could be opened.
#include "data/corpus.h"
#include "tests/fuzz/fuzz.h"

using namespace octavo;

namespace {

void read_row(const Corpus& corpus, std::int64_t row, std::vector<std::int32_t>& ids) {
  for (std::size_t c = 0; c < corpus.columns().size(); ++c) {
    switch (corpus.columns()[c].type) {
      case ColumnType::tokens16:
      case ColumnType::tokens32:
        ids.clear();
        corpus.append_tokens(c, row, ids);
        break;
      case ColumnType::text:
        corpus.text(c, row);
        break;
      case ColumnType::number:
        corpus.number(c, row);
        break;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::MemoryFile file(data, size);
  fuzz::may_refuse([&] {
    const Corpus corpus(file.path());
    std::vector<std::int32_t> ids;
    for (std::int64_t row = 0; row < corpus.rows(); ++row)
      fuzz::may_refuse([&] { read_row(corpus, row, ids); });
    corpus.verify();
  });
  return 0;
}
