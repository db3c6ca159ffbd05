#pragma once

#include <string>

#include "core/token_batch.h"
#include "model/config.h"
#include "model/layers/pass.h"
#include "model/ops/attention.h"

// N = rows of the queries' side, M = rows of the keys' side, D = model width, P = heads * head
// width.
namespace octavo {

/// Multi-head attention with its projections: of a sequence to itself, or (cross) of the decoder to
/// the encoder's output. One matrix computes q, k and v of self-attention, one k and v of cross.
/// Source: Vaswani et al. (2017), section 3.2.
class MultiHeadAttention {
 public:
  enum class Kind : unsigned char { self, causal, cross };

  /// Declares "PREFIX.{q,k,v,out}.{weight,bias}" in the table's current group.
  MultiHeadAttention(const ModelConfig& config, Kind kind, const std::string& prefix, int site,
                     ParameterTable& table);

  struct Saved {
    Tensor x_ND = {};
    Tensor queries_NP = {};  ///< of self-attention: columns of one product [N, 3P]
    Tensor projected = {};   ///< self: [N, 3P] q, k, v; cross: [M, 2P] k, v
    Tensor context_NP = {};
    Tensor lse_NH = {};
  };
  /// @param memory_MD  the encoder's output; absent for self-attention.
  /// @param y_ND       overwritten.
  Saved forward(const Pass& pass, const PackedTokens& queries, const PackedTokens& keys,
                const Tensor& x_ND, const Tensor& memory_MD, Tensor y_ND) const;

  struct Gradients {
    Tensor dx_ND;
    bool add_to_dx;
    Tensor dmemory_MD;  ///< added to; absent for self-attention
  };
  void backward(const Pass& pass, const PackedTokens& queries, const PackedTokens& keys,
                const Tensor& memory_MD, const Saved& saved, const Tensor& dy_ND,
                const Gradients& out) const;

  /// Pieces that decoding needs one by one.
  std::int64_t inner_width() const { return spec_.heads * spec_.key_width; }
  const AttentionSpec& spec() const { return spec_; }
  /// Self: q, k, v [N, 3P] of x. Cross: k, v [M, 2P] of the encoder's output.
  void project(const Pass& pass, const Tensor& x, Tensor projected) const;
  /// Cross only: q [N, P] of x.
  void project_queries(const Pass& pass, const Tensor& x_ND, Tensor queries_NP) const;
  void project_output(const Pass& pass, const Tensor& context_NP, Tensor y_ND) const;

 private:
  void show_weights(const Pass& pass, const AttentionArgs& in) const;
  AttentionArgs arguments(const Pass& pass, const PackedTokens& queries, const PackedTokens& keys,
                          const Saved& saved) const;

  std::string name_;
  AttentionSpec spec_;
  Kind kind_;
  double dropout_;
  int site_;
  ParameterSpan query_weight_, query_bias_;  // cross only
  ParameterSpan packed_weight_, packed_bias_, out_weight_, out_bias_;
};

}  // namespace octavo
