#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/token_batch.h"
#include "model/incremental_decoder.h"
#include "model/layers/pass.h"
#include "model/transformer.h"
#include "translate/search.h"

// R = hypotheses alive, M = source rows, D = model width, Vp = rows of logits.
namespace octavo {

/// A Transformer as what a search asks: one step of its decoder, then the likeliest pieces.
class ModelScorer : public StepScorer {
 public:
  struct Options {
    std::int64_t max_rows;   ///< hypotheses alive at once, over all sentences
    std::int64_t max_steps;  ///< tokens of the longest output
    std::int64_t k;          ///< pieces per row, at most V less those never generated
    std::int32_t eos;
    std::span<const std::int32_t> never_generated;
  };
  /// @param source, memory_MD  the encoder's input and output. They, pass.memory and
  ///                           `never_generated` must outlive the scorer.
  ModelScorer(const Transformer& model, const Pass& pass, const PackedTokens& source,
              Tensor memory_MD, const Options& options);

  Pieces step(std::span<const std::int32_t> newest) override;
  void select(std::span<const std::int32_t> parents, std::span<const std::int32_t> rows) override;

  /// The part of step() that runs on the device: all that a plan can do.
  void compute(std::span<const std::int32_t> newest);

 private:
  void find_pieces(const Tensor& output, std::int64_t first, std::int64_t rows);
  double eos_log_probability(std::int64_t row, std::int64_t logit_row) const;

  const Transformer& model_;
  const Pass& pass_;
  Options options_;
  Tensor log_probabilities_, ids_;  // [max rows, k]
  Tensor logits_;                   // [rows at a time, Vp]
  IncrementalDecoder decoder_;
  std::vector<double> read_, eos_;
};

}  // namespace octavo
