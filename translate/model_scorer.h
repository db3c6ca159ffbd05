#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/token_batch.h"
#include "model/incremental_decoder.h"
#include "model/layers/pass.h"
#include "model/transformer.h"
#include "translate/search.h"

// R = hypotheses alive, M = source rows, D = model width, V = target vocabulary.
namespace octavo {

/// A Transformer as what a search asks: one step of its decoder, then the likeliest pieces.
class ModelScorer : public StepScorer {
 public:
  struct Sizes {
    std::int64_t max_rows;   ///< hypotheses alive at once, over all sentences
    std::int64_t max_steps;  ///< tokens of the longest output
    std::int64_t k;          ///< pieces per row, at most V less those never generated
  };
  /// @param source, memory_MD  the encoder's input and output. They, pass.memory and
  ///                           `never_generated` must outlive the scorer.
  ModelScorer(const Transformer& model, const Pass& pass, const PackedTokens& source,
              Tensor memory_MD, const Sizes& sizes, std::span<const std::int32_t> never_generated);

  Pieces step(std::span<const std::int32_t> newest) override;
  double log_probability(std::int64_t row, std::int32_t piece) override;
  void select(std::span<const std::int32_t> parents, std::span<const std::int32_t> rows) override;

  /// The part of step() that runs on the device: all that a plan can do.
  void compute(std::span<const std::int32_t> newest);

 private:
  const Transformer& model_;
  const Pass& pass_;
  std::int64_t k_;
  std::span<const std::int32_t> never_generated_;
  Tensor log_probabilities_, ids_;  // [max rows, k]
  Tensor logits_;                   // [R, Vp] of the last step
  IncrementalDecoder decoder_;
  std::vector<double> read_;
};

}  // namespace octavo
