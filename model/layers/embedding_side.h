#pragma once

#include <string>

#include "core/token_batch.h"
#include "model/config.h"
#include "model/layers/pass.h"

// N = rows of this side, D = model width.
namespace octavo {

/// Tokens of one side to vectors: sqrt(D) * embedding + position, with dropout.
/// Source: Vaswani et al. (2017), sections 3.4 and 3.5.
class EmbeddingSide {
 public:
  /// Declares "NAME.weight" unless `shared` is given, and "POSITIONS.weight" if they are learned,
  /// in a new group.
  EmbeddingSide(const ModelConfig& config, const std::string& name, const std::string& positions,
                std::int64_t vocabulary, const ParameterSpan* shared, int site,
                ParameterTable& table);

  void forward(const Pass& pass, const PackedTokens& tokens, Tensor x_ND) const;
  /// Adds to the gradients of the embedding and of learned positions.
  void backward(const Pass& pass, const PackedTokens& tokens, const Tensor& dx_ND) const;

  const ParameterSpan& weight() const { return weight_; }
  int group() const { return group_; }

 private:
  Tensor position_table(const Pass& pass) const;
  Dropout dropout(const Pass& pass, const PackedTokens& tokens) const;

  std::int64_t width_, max_positions_;
  bool learned_;
  double dropout_;
  int site_;
  int group_;
  ParameterSpan weight_, positions_;
};

}  // namespace octavo
