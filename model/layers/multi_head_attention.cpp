#include "model/layers/multi_head_attention.h"

#include <cmath>

#include "model/ops/linear.h"

namespace octavo {

MultiHeadAttention::MultiHeadAttention(const ModelConfig& config, Kind kind,
                                       const std::string& prefix, int site, ParameterTable& table)
    : name_(prefix), kind_(kind), dropout_(config.attention_dropout), site_(site) {
  const std::int64_t width = config.resolved_head_width(), D = config.width;
  const std::int64_t P = config.heads * width;
  spec_ = {.heads = config.heads,
           .key_width = width,
           .value_width = width,
           .mask = kind == Kind::causal ? Mask::causal : Mask::none,
           .scale = 1.0 / std::sqrt(static_cast<double>(width))};
  const std::string q = prefix + ".q.", k = prefix + ".k.", v = prefix + ".v.";
  if (kind == Kind::cross) {
    query_weight_ = table.add_matrix(q + "weight", P, D, Init::xavier);
    query_bias_ = table.add_vector(q + "bias", P, Init::zeros);
    packed_weight_ = table.add_packed_matrix({k + "weight", v + "weight"}, P, D, Init::xavier);
    packed_bias_ = table.add_packed_vector({k + "bias", v + "bias"}, P, Init::zeros);
  } else {
    packed_weight_ =
        table.add_packed_matrix({q + "weight", k + "weight", v + "weight"}, P, D, Init::xavier);
    packed_bias_ = table.add_packed_vector({q + "bias", k + "bias", v + "bias"}, P, Init::zeros);
  }
  out_weight_ = table.add_matrix(prefix + ".out.weight", D, P, Init::xavier);
  out_bias_ = table.add_vector(prefix + ".out.bias", D, Init::zeros);
}

void MultiHeadAttention::project(const Pass& pass, const Tensor& x, Tensor projected) const {
  linear_forward(pass.ctx, pass.parameters.linear(x, packed_weight_, packed_bias_), projected);
}

void MultiHeadAttention::project_queries(const Pass& pass, const Tensor& x_ND,
                                         Tensor queries_NP) const {
  linear_forward(pass.ctx, pass.parameters.linear(x_ND, query_weight_, query_bias_), queries_NP);
}

void MultiHeadAttention::project_output(const Pass& pass, const Tensor& context_NP,
                                        Tensor y_ND) const {
  linear_forward(pass.ctx, pass.parameters.linear(context_NP, out_weight_, out_bias_), y_ND);
}

AttentionArgs MultiHeadAttention::arguments(const Pass& pass, const PackedTokens& queries,
                                            const PackedTokens& keys, const Saved& saved) const {
  const std::int64_t P = inner_width(), first = kind_ == Kind::cross ? 0 : P;
  return {.spec = spec_,
          .q = saved.queries_NP,
          .k = saved.projected.columns(first, P),
          .v = saved.projected.columns(first + P, P),
          .queries = queries,
          .keys = keys,
          .dropout = pass.random.at(site_, dropout_, queries.ordinals)};
}

void MultiHeadAttention::show_weights(const Pass& pass, const AttentionArgs& in) const {
  const ArenaScope scope(pass.memory);
  const Tensor weights =
      pass.allocate_statistics({in.queries.tokens, spec_.heads, in.keys.longest});
  attention_weights(pass.ctx, in, weights);
  (*pass.attention)(name_, weights);
}

MultiHeadAttention::Saved MultiHeadAttention::forward(const Pass& pass, const PackedTokens& queries,
                                                      const PackedTokens& keys, const Tensor& x_ND,
                                                      const Tensor& memory_MD, Tensor y_ND) const {
  const std::int64_t N = queries.rows, M = keys.rows, P = inner_width();
  Saved saved{.x_ND = x_ND};
  if (kind_ == Kind::cross) {
    saved.queries_NP = pass.allocate({N, P});
    project_queries(pass, x_ND, saved.queries_NP);
    saved.projected = pass.allocate({M, 2 * P});
    project(pass, memory_MD, saved.projected);
  } else {
    saved.projected = pass.allocate({N, 3 * P});
    project(pass, x_ND, saved.projected);
    saved.queries_NP = saved.projected.columns(0, P);
  }
  saved.context_NP = pass.allocate({N, P});
  saved.lse_NH = pass.allocate_statistics({N, spec_.heads});
  const AttentionArgs in = arguments(pass, queries, keys, saved);
  attention_forward(pass.ctx, in, saved.context_NP, saved.lse_NH);
  if (pass.attention != nullptr) show_weights(pass, in);
  project_output(pass, saved.context_NP, y_ND);
  return saved;
}

void MultiHeadAttention::backward(const Pass& pass, const PackedTokens& queries,
                                  const PackedTokens& keys, const Tensor& memory_MD,
                                  const Saved& saved, const Tensor& dy_ND,
                                  const Gradients& out) const {
  const std::int64_t N = queries.rows, M = keys.rows, P = inner_width();
  const Parameters& p = pass.parameters;
  const ArenaScope scope(pass.ctx.scratch());

  const Tensor dcontext_NP = pass.scratch({N, P});
  linear_backward(
      pass.ctx, {.x = saved.context_NP, .weight = p.weight(out_weight_)}, dy_ND,
      {.dx = dcontext_NP, .dweight = p.gradient(out_weight_), .dbias = p.gradient(out_bias_)});

  const bool cross = kind_ == Kind::cross;
  const Tensor dprojected = cross ? pass.scratch({M, 2 * P}) : pass.scratch({N, 3 * P});
  const Tensor dqueries_NP = cross ? pass.scratch({N, P}) : dprojected.columns(0, P);
  const std::int64_t first = cross ? 0 : P;
  attention_backward(pass.ctx, arguments(pass, queries, keys, saved), saved.context_NP,
                     saved.lse_NH, dcontext_NP,
                     {.dq = dqueries_NP,
                      .dk = dprojected.columns(first, P),
                      .dv = dprojected.columns(first + P, P)});

  linear_backward(pass.ctx,
                  {.x = cross ? memory_MD : saved.x_ND, .weight = p.weight(packed_weight_)},
                  dprojected,
                  {.dx = cross ? out.dmemory_MD : out.dx_ND,
                   .add_to_dx = cross || out.add_to_dx,
                   .dweight = p.gradient(packed_weight_),
                   .dbias = p.gradient(packed_bias_)});
  if (!cross) return;
  linear_backward(pass.ctx, {.x = saved.x_ND, .weight = p.weight(query_weight_)}, dqueries_NP,
                  {.dx = out.dx_ND,
                   .add_to_dx = out.add_to_dx,
                   .dweight = p.gradient(query_weight_),
                   .dbias = p.gradient(query_bias_)});
}

}  // namespace octavo
