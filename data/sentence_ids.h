#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/corpus.h"
#include "data/vocabulary.h"

namespace octavo {

/// "corpora/train.en line 17": where a row of a corpus comes from, for messages.
std::string describe_row(const Corpus& corpus, std::int64_t row);

/// Appends a sentence as the model takes it: the row's ids, then EOS.
/// @throws UserError  an id is outside the vocabulary, or the corpus is damaged.
void append_sentence(const Corpus& corpus, std::size_t column, std::int64_t row,
                     const Vocabulary& vocabulary, std::vector<std::int32_t>& out);

}  // namespace octavo
