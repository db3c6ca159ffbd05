#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "core/settings.h"
#include "data/text_pairs.h"
#include "model/parameters.h"
#include "model/transformer.h"
#include "trainer/config.h"
#include "translate/config.h"

namespace octavo {

/// A trained model with what turns text into its ids and back.
struct LoadedModel {
  std::filesystem::path checkpoint;
  SubwordPair subwords;
  std::unique_ptr<const Transformer> model;
  std::unique_ptr<Parameters> parameters;
};

/// Loads the weights that translate: a checkpoint's running average if it has one, else its
/// weights. Every file that is read is compared with its checksum.
/// @param path  a checkpoint, or a run: then its best checkpoint, else its newest.
/// @throws UserError  there is none, or it is damaged or of another model.
LoadedModel load_model(const std::filesystem::path& path, Precision precision, int threads);

/// The same for translating: weights are kept as products on one thread read them fastest, and
/// float32 matrices that only products read as nothing else: their views of parameters hold zeros.
LoadedModel load_packed_model(const std::filesystem::path& path, Precision precision,
                              WeightFormat format, int threads);

/// How the run of a model searched in validation: its section 'translate'.
/// @param path  as for load_model(). @throws UserError
SearchConfig search_of_run(const std::filesystem::path& path);

/// Options of every command that uses a model.
struct ModelUseConfig {
  std::optional<int> threads;
  Precision precision = Precision::float32;

  /// What was asked for, else OMP_NUM_THREADS, else one per processor.
  int resolved_threads() const;

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("threads", threads, "processors to use", v.closed(1, 1024), v.empty_is("all"));
    v.setting("precision", precision, "float32, or bf16 where the processor can");
  }
};

}  // namespace octavo
