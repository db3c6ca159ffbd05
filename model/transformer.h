#pragma once

#include <memory>

#include "core/token_batch.h"
#include "model/config.h"
#include "model/layers/embedding_side.h"
#include "model/layers/pass.h"
#include "model/layers/stack.h"

// N = target rows, M = source rows, D = model width, V = target vocabulary, Vp = V rounded up.
namespace octavo {

/// The encoder-decoder Transformer of Vaswani et al. (2017) on packed batches.
///
/// It owns the table of its parameters, not their numbers. Embeddings are multiplied by sqrt(D);
/// positions are added; the output projection has no bias.
class Transformer {
 public:
  /// @throws UserError  shared embeddings over two vocabularies.
  Transformer(const ModelConfig& config, std::int64_t source_vocabulary,
              std::int64_t target_vocabulary);
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  const ParameterTable& table() const { return table_; }
  const ModelConfig& config() const { return config_; }
  std::int64_t source_vocabulary() const { return source_vocabulary_; }
  std::int64_t target_vocabulary() const { return target_vocabulary_; }

  struct LossOptions {
    double label_smoothing = 0;
    double gradient_scale = 1;  ///< 1 / (target tokens of the update over all ranks)
    Recompute recompute = Recompute::none;
  };

  /// What backward needs of one micro-batch. Owned by the caller and used again.
  struct Saved {
    Tensor source_MD, memory_MD, target_ND, output_ND;
    Stack::Saved encoder, decoder;
    Tensor doutput_ND;
  };

  /// Runs the model and adds the loss to sums; the gradient of the projection is taken at once.
  /// @param sums  f64 [2]: smoothed loss and -log p(label), summed over target tokens.
  void forward(const Pass& pass, const TokenBatch& batch, const LossOptions& options, Tensor sums,
               Saved& saved) const;
  /// Adds to every gradient. @param done  called for each group when its gradients are complete.
  void backward(const Pass& pass, const TokenBatch& batch, const LossOptions& options, Saved& saved,
                const GroupDone& done) const;

  /// The loss alone, without gradients or anything saved: validation and scoring.
  /// @param log_likelihood  [N], statistics type: log p(label) per token; or absent.
  void evaluate(const Pass& pass, const TokenBatch& batch, double label_smoothing, Tensor sums,
                Tensor log_likelihood) const;

  /// The encoder's output [M, D], in pass.memory.
  Tensor encode(const Pass& pass, const PackedTokens& source) const;

  /// Pieces that decoding needs one by one.
  const Stack& decoder() const { return decoder_; }
  const EmbeddingSide& target_side() const { return target_; }
  /// logits [N, Vp] = output W^T.
  void project(const Pass& pass, const Tensor& output_ND, Tensor logits) const;
  /// The weights of all products: what Parameters::pack() may take.
  std::vector<ParameterSpan> product_weights() const;
  /// Vp.
  std::int64_t padded_target_vocabulary() const;

 private:
  const ParameterSpan* shared_source() const;
  ParameterSpan declare_output();

  ModelConfig config_;
  std::int64_t source_vocabulary_, target_vocabulary_;
  ParameterTable table_;
  // In the order of forward: this is the order of the parameter groups.
  EmbeddingSide source_;
  Stack encoder_;
  EmbeddingSide target_;
  Stack decoder_;
  int output_group_;
  ParameterSpan output_;
};

}  // namespace octavo
