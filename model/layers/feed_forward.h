#pragma once

#include <string>

#include "core/token_batch.h"
#include "model/config.h"
#include "model/layers/pass.h"

// N = rows, D = model width, F = hidden width.
namespace octavo {

/// y = W2 dropout(activation(W1 x + b1)) + b2. Source: Vaswani et al. (2017), section 3.3.
class FeedForward {
 public:
  /// Declares "PREFIX.{up,down}.{weight,bias}" in the table's current group.
  FeedForward(const ModelConfig& config, const std::string& prefix, int site,
              ParameterTable& table);

  struct Saved {
    Tensor x_ND = {};
    Tensor up_NF = {};      ///< before the activation; for relu the same memory as hidden_NF
    Tensor hidden_NF = {};  ///< after activation and dropout
  };
  Saved forward(const Pass& pass, const PackedTokens& tokens, const Tensor& x_ND,
                Tensor y_ND) const;
  void backward(const Pass& pass, const PackedTokens& tokens, const Saved& saved,
                const Tensor& dy_ND, Tensor dx_ND, bool add_to_dx) const;

 private:
  std::int64_t hidden_;
  Activation activation_;
  double dropout_;
  int site_;
  ParameterSpan up_weight_, up_bias_, down_weight_, down_bias_;
};

}  // namespace octavo
