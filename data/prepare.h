#pragma once

#include <string>
#include <vector>

#include "data/config.h"
#include "data/text_pairs.h"

namespace octavo {

/// What prepare() did for one part.
struct PreparedPart {
  std::string name;   ///< "subwords", "train.0", ..., "dev"
  bool made = false;  ///< false: it was up to date
  PairCounts counts;  ///< of a corpus
};

/// Makes the subword models, their vocabularies and the binary corpora in `config.prepared`, as far
/// as they are not there already: text, settings and files are compared by content, so a change of
/// any of them remakes what depends on it, and a killed preparation goes on where it was. Progress
/// and dropped pairs are logged.
///
/// @param threads  used for encoding; any number gives the same files
/// @throws UserError  unequal files, a missing file, a full disk, no usable pair, another process
///                    preparing the same folder, ...
std::vector<PreparedPart> prepare(const DataConfig& config, int threads);

}  // namespace octavo
