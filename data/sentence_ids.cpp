#include "data/sentence_ids.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace octavo {

std::string describe_row(const Corpus& corpus, std::int64_t row) {
  const auto source = corpus.metadata().find("source");
  if (source == corpus.metadata().end() || !corpus.has("line"))
    return fmt::format("{} row {}", corpus.path().string(), row);
  return fmt::format("{} line {}", source->second, corpus.number(corpus.column("line"), row));
}

void append_sentence(const Corpus& corpus, std::size_t column, std::int64_t row,
                     const Vocabulary& vocabulary, std::vector<std::int32_t>& out) {
  const std::size_t begin = out.size();
  corpus.append_tokens(column, row, out);
  const auto outside =
      std::find_if(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(),
                   [&](std::int32_t id) { return id < 0 || id >= vocabulary.size(); });
  if (outside != out.end()) {
    throw UserError(fmt::format(
        "{}: the id {} ({}) is outside the vocabulary of {}. The corpus is damaged or was made "
        "with "
        "another subword model; run 'octavo prepare' again.",
        corpus.path().string(), *outside, describe_row(corpus, row), vocabulary.size()));
  }
  out.push_back(vocabulary.eos());
}

}  // namespace octavo
