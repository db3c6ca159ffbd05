#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/config.h"
#include "data/corpus.h"
#include "data/manifest.h"
#include "data/subwords.h"
#include "data/text_pairs.h"
#include "data/update_builder.h"

namespace octavo {

/// Files of the subword models and their vocabularies: subwords.model and .vocab for both sides, or
/// source.* and target.*. A prepared folder has them, and every checkpoint a copy.
std::vector<std::string> subword_files(bool joint);

/// @param joint  one model for both sides.
/// @throws UserError  the folder has no such model, or it is damaged.
SubwordPair load_subwords(const std::filesystem::path& folder, bool joint);

/// What 'octavo prepare' made, opened for training.
struct PreparedData {
  SubwordPair subwords;
  std::vector<Corpus> train;  ///< in the order of data.train
  std::optional<Corpus> dev;
};

/// What updates are drawn from, under the settings that `data` was opened with. Points into `data`.
TrainingData training_data(const PreparedData& data, const DataConfig& config);

/// Opens a prepared folder. Does not look at the text, which may be elsewhere by now.
/// Every file is read once and compared with its checksum.
/// @throws UserError  it was not prepared, or not with these settings, or a file is missing,
///                    damaged or of another preparation.
PreparedData open_prepared(const DataConfig& config);

/// One thing that is prepared: the subword models, or a corpus.
struct Part {
  std::string name;                             ///< "subwords", "train.0", "dev"
  std::map<std::string, std::string> settings;  ///< what it depends on besides its inputs' content
  std::optional<TextPair> files{};              ///< of a corpus
  bool trained_on = false;

  std::string corpus_file() const { return name + ".corpus"; }
};

/// Everything that a configuration wants prepared, in the order in which it is made.
std::vector<Part> parts_of(const DataConfig& config);

}  // namespace octavo
