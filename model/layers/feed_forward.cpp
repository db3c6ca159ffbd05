#include "model/layers/feed_forward.h"

#include "model/ops/linear.h"

namespace octavo {

FeedForward::FeedForward(const ModelConfig& config, const std::string& prefix, int site,
                         ParameterTable& table)
    : hidden_(config.hidden),
      activation_(config.activation),
      dropout_(config.activation_dropout),
      site_(site) {
  up_weight_ = table.add_matrix(prefix + ".up.weight", hidden_, config.width, Init::xavier);
  up_bias_ = table.add_vector(prefix + ".up.bias", hidden_, Init::zeros);
  down_weight_ = table.add_matrix(prefix + ".down.weight", config.width, hidden_, Init::xavier);
  down_bias_ = table.add_vector(prefix + ".down.bias", config.width, Init::zeros);
}

FeedForward::Saved FeedForward::forward(const Pass& pass, const PackedTokens& tokens,
                                        const Tensor& x_ND, Tensor y_ND) const {
  const Parameters& p = pass.parameters;
  Saved saved{.x_ND = x_ND, .up_NF = pass.allocate({tokens.rows, hidden_}), .hidden_NF = {}};
  linear_forward(pass.ctx, p.linear(x_ND, up_weight_, up_bias_), saved.up_NF);
  saved.hidden_NF =
      activation_ == Activation::relu ? saved.up_NF : pass.allocate({tokens.rows, hidden_});
  activation_forward(pass.ctx,
                     {.x = saved.up_NF,
                      .kind = activation_,
                      .dropout = pass.random.at(site_, dropout_, tokens.ordinals)},
                     saved.hidden_NF);
  linear_forward(pass.ctx, p.linear(saved.hidden_NF, down_weight_, down_bias_), y_ND);
  return saved;
}

void FeedForward::backward(const Pass& pass, const PackedTokens& tokens, const Saved& saved,
                           const Tensor& dy_ND, Tensor dx_ND, bool add_to_dx) const {
  const Parameters& p = pass.parameters;
  const ArenaScope scope(pass.ctx.scratch());
  const Tensor dhidden_NF = pass.scratch({tokens.rows, hidden_});
  linear_backward(
      pass.ctx, {.x = saved.hidden_NF, .weight = p.weight(down_weight_)}, dy_ND,
      {.dx = dhidden_NF, .dweight = p.gradient(down_weight_), .dbias = p.gradient(down_bias_)});
  activation_backward(pass.ctx,
                      {.x = saved.up_NF,
                       .kind = activation_,
                       .dropout = pass.random.at(site_, dropout_, tokens.ordinals)},
                      saved.hidden_NF, dhidden_NF, dhidden_NF);
  linear_backward(pass.ctx, {.x = saved.x_ND, .weight = p.weight(up_weight_)}, dhidden_NF,
                  {.dx = dx_ND,
                   .add_to_dx = add_to_dx,
                   .dweight = p.gradient(up_weight_),
                   .dbias = p.gradient(up_bias_)});
}

}  // namespace octavo
