#pragma once

#include <cstdint>

#include "data/partition.h"
#include "model/transformer.h"
#include "trainer/config.h"
#include "trainer/planned_work.h"
#include "translate/config.h"
#include "translate/work_memory.h"

namespace octavo {

/// A Transformer and the largest work that its training does.
class PlannedTranslation final : public PlannedWork {
 public:
  struct Setup {
    const ModelConfig& model;
    std::int64_t source_vocabulary, target_vocabulary;
    std::int64_t max_length;  ///< of a sentence in tokens, EOS counted
    const TrainerConfig& trainer;
    const SearchConfig& search;
    bool validates;  ///< whether there is held-out text to validate on
    int threads;     ///< CPU ops keep scratch per thread
  };
  /// @throws UserError  sizes that don't fit together.
  explicit PlannedTranslation(const Setup& setup);

  const Transformer& model() const { return model_; }
  /// What a micro-batch of so many target tokens may hold.
  BatchLimits limits(std::int64_t max_tokens) const;
  /// What validation takes besides weights.
  WorkMemory validation_memory() const { return validation_; }
  /// FLOPs of forward and backward of a batch, by what every op states.
  std::int64_t flops(const TokenBatch& batch) const;

  const ParameterTable& parameter_table() const override { return model_.table(); }
  void plan(const Pass& pass, std::int64_t max_tokens) const override;
  std::int64_t smallest_max_tokens() const override;
  std::int64_t validation_bytes(bool own_weights) const override;

 private:
  void run(const Pass& pass, const TokenBatch& batch) const;

  Transformer model_;
  TrainerConfig config_;
  std::int64_t max_length_;
  int threads_;
  WorkMemory validation_{};  ///< zero if it does not validate
};

}  // namespace octavo
