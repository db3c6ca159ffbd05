#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/token_batch.h"
#include "model/config.h"
#include "model/layers/feed_forward.h"
#include "model/layers/multi_head_attention.h"
#include "model/layers/pass.h"
#include "model/ops/residual_norm.h"

// N = rows of this side, M = rows of the encoder's side, D = model width.
namespace octavo {

/// What backward may rebuild instead of keeping: nothing, or the inside of every layer.
enum class Recompute : unsigned char { none, layer };

struct NormParameters {
  ParameterSpan gamma, beta;
};

/// One sublayer, and the norm that closes it. Post-norm: its own norm, whose output is the next
/// residual. Pre-norm: the next sublayer's norm; the sum is the next residual.
struct Block {
  std::optional<MultiHeadAttention> attention;
  std::optional<FeedForward> feed_forward;  ///< exactly one of the two
  bool cross = false;
  NormParameters norm{};
  int site = 0;   ///< of the dropout on its output
  int group = 0;  ///< of its parameters and its norm's
};

/// The encoder, or the decoder: a chain of blocks on packed sentences.
class Stack {
 public:
  enum class Kind : unsigned char { encoder, decoder };

  /// Declares its parameters under "encoder." or "decoder.", a group per block.
  Stack(const ModelConfig& config, Kind kind, ParameterTable& table);

  struct BlockSaved {
    Tensor residual_ND, input_ND;  ///< what entered the block
    MultiHeadAttention::Saved attention;
    FeedForward::Saved feed_forward;
    ResidualNormSaved norm;
    Tensor output_ND;
  };
  /// Owned by the caller and used again: no allocation once it has grown.
  struct Saved {
    Tensor x_ND;
    ResidualNormSaved first_norm;  ///< pre-norm only
    std::vector<BlockSaved> blocks;
  };

  /// The two sides as a stack sees them; an encoder's keys are its own tokens and memory is absent.
  struct Input {
    const PackedTokens& tokens;
    const PackedTokens& keys;
    Tensor x_ND;
    Tensor memory_MD = {};
  };

  /// @return the output [N, D], which lives in pass.memory.
  Tensor forward(const Pass& pass, const Input& in, Recompute recompute, Saved& saved) const;

  /// @param d_ND  in: gradient of the output; out: gradient of x.
  /// @param dmemory_MD  added to; absent for an encoder.
  void backward(const Pass& pass, const Input& in, Recompute recompute, Saved& saved, Tensor d_ND,
                Tensor dmemory_MD, const GroupDone& done) const;

  const std::vector<Block>& blocks() const { return blocks_; }
  bool pre_norm() const { return first_norm_.has_value(); }
  /// The norm on x itself; pre-norm only.
  const NormParameters& first_norm() const { return *first_norm_; }
  /// Arguments of the norm that closes a block, or of the first norm.
  ResidualNormArgs norm_arguments(const Pass& pass, const NormParameters& norm) const;

 private:
  void declare_block(const ModelConfig& config, const std::string& name, std::size_t index,
                     ParameterTable& table);
  NormParameters declare_norm(const std::string& name, ParameterTable& table) const;

  void allocate_outputs(const Pass& pass, std::int64_t rows, BlockSaved& saved) const;
  void forward_layer(const Pass& pass, const Input& in, std::size_t first, Saved& saved) const;
  void forward_block(const Pass& pass, const Input& in, std::size_t i, Saved& saved) const;
  void backward_block(const Pass& pass, const Input& in, std::size_t i, const Saved& saved,
                      Tensor d_ND, Tensor dstream_ND, Tensor dmemory_MD) const;

  std::int64_t width_;
  double dropout_;
  std::string prefix_;
  std::size_t blocks_per_layer_;
  int first_site_;
  std::optional<NormParameters> first_norm_;
  int first_group_ = -1;
  std::vector<Block> blocks_;
};

}  // namespace octavo
