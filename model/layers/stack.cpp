#include "model/layers/stack.h"

#include <fmt/format.h>

namespace octavo {

namespace {

/// Dropout sites of a stack begin here; a block uses two. The embeddings use the sites below.
constexpr int kEncoderSites = 1000;
constexpr int kDecoderSites = 100000;

}  // namespace

Stack::Stack(const ModelConfig& config, Kind kind, ParameterTable& table)
    : width_(config.width),
      dropout_(config.dropout),
      prefix_(kind == Kind::encoder ? "encoder" : "decoder"),
      blocks_per_layer_(kind == Kind::encoder ? 2 : 3),
      first_site_(kind == Kind::encoder ? kEncoderSites : kDecoderSites) {
  const int layers = kind == Kind::encoder ? config.encoder_layers : config.decoder_layers;
  std::vector<std::string> names;
  for (int layer = 0; layer < layers; ++layer) {
    const std::string base = fmt::format("{}.layers.{}.", prefix_, layer);
    names.push_back(base + "self_attention");
    if (kind == Kind::decoder) names.push_back(base + "cross_attention");
    names.push_back(base + "feed_forward");
  }
  const bool pre = config.norm == NormPlace::pre;
  if (pre) {
    first_group_ = table.begin_group();
    first_norm_ = declare_norm(names.front() + "_norm", table);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    declare_block(config, names[i], i, table);
    const bool last = i + 1 == names.size();
    const std::string norm = !pre   ? names[i] + "_norm"
                             : last ? prefix_ + ".norm"
                                    : names[i + 1] + "_norm";
    blocks_.back().norm = declare_norm(norm, table);
  }
}

void Stack::declare_block(const ModelConfig& config, const std::string& name, std::size_t index,
                          ParameterTable& table) {
  Block block;
  block.group = table.begin_group();
  const int site = first_site_ + 2 * static_cast<int>(index);
  block.site = site + 1;
  const std::size_t place = index % blocks_per_layer_;
  using AttentionKind = MultiHeadAttention::Kind;
  if (place + 1 == blocks_per_layer_) {
    block.feed_forward.emplace(config, name, site, table);
  } else if (place == 1) {
    block.cross = true;
    block.attention.emplace(config, AttentionKind::cross, name, site, table);
  } else {
    const AttentionKind kind = blocks_per_layer_ == 3 ? AttentionKind::causal : AttentionKind::self;
    block.attention.emplace(config, kind, name, site, table);
  }
  blocks_.push_back(block);
}

NormParameters Stack::declare_norm(const std::string& name, ParameterTable& table) const {
  return {.gamma = table.add_vector(name + ".weight", width_, Init::ones),
          .beta = table.add_vector(name + ".bias", width_, Init::zeros)};
}

ResidualNormArgs Stack::norm_arguments(const Pass& pass, const NormParameters& norm) const {
  return {.residual = {},
          .gamma = pass.parameters.master(norm.gamma),
          .beta = pass.parameters.master(norm.beta)};
}

void Stack::allocate_outputs(const Pass& pass, std::int64_t rows, BlockSaved& saved) const {
  saved.output_ND = pass.allocate({rows, width_});
  saved.norm = {.sum = pass.allocate({rows, width_}),
                .mean = pass.allocate_statistics({rows}),
                .rstd = pass.allocate_statistics({rows})};
}

Tensor Stack::forward(const Pass& pass, const Input& in, Recompute recompute, Saved& saved) const {
  const std::int64_t N = in.tokens.rows;
  saved.blocks.resize(blocks_.size());
  saved.x_ND = in.x_ND;
  Tensor input_ND = in.x_ND;
  if (pre_norm()) {
    input_ND = pass.allocate({N, width_});
    saved.first_norm = {.sum = in.x_ND,
                        .mean = pass.allocate_statistics({N}),
                        .rstd = pass.allocate_statistics({N})};
    ResidualNormArgs norm = norm_arguments(pass, *first_norm_);
    norm.residual = in.x_ND;
    residual_norm_forward(pass.ctx, norm, input_ND, saved.first_norm);
  }
  saved.blocks.front().residual_ND = in.x_ND;
  saved.blocks.front().input_ND = input_ND;
  for (std::size_t first = 0; first < blocks_.size(); first += blocks_per_layer_) {
    allocate_outputs(pass, N, saved.blocks[first + blocks_per_layer_ - 1]);
    const std::int64_t mark = pass.memory.used();
    forward_layer(pass, in, first, saved);
    if (recompute == Recompute::layer) pass.memory.release_to(mark);
  }
  return saved.blocks.back().output_ND;
}

void Stack::forward_layer(const Pass& pass, const Input& in, std::size_t first,
                          Saved& saved) const {
  for (std::size_t i = first; i < first + blocks_per_layer_; ++i) {
    if (i + 1 < first + blocks_per_layer_) allocate_outputs(pass, in.tokens.rows, saved.blocks[i]);
    forward_block(pass, in, i, saved);
  }
}

void Stack::forward_block(const Pass& pass, const Input& in, std::size_t i, Saved& saved) const {
  const Block& block = blocks_[i];
  BlockSaved& s = saved.blocks[i];
  // The branch is written where the norm's output will be: the norm works in place.
  if (block.attention) {
    s.attention = block.attention->forward(pass, in.tokens, block.cross ? in.keys : in.tokens,
                                           s.input_ND, in.memory_MD, s.output_ND);
  } else {
    s.feed_forward = block.feed_forward->forward(pass, in.tokens, s.input_ND, s.output_ND);
  }
  ResidualNormArgs norm = norm_arguments(pass, block.norm);
  norm.residual = s.residual_ND;
  norm.branch = s.output_ND;
  norm.dropout = pass.random.at(block.site, dropout_, in.tokens.ordinals);
  residual_norm_forward(pass.ctx, norm, s.output_ND, s.norm);
  if (i + 1 < blocks_.size()) {
    saved.blocks[i + 1].input_ND = s.output_ND;
    saved.blocks[i + 1].residual_ND = pre_norm() ? s.norm.sum : s.output_ND;
  }
}

void Stack::backward(const Pass& pass, const Input& in, Recompute recompute, Saved& saved,
                     Tensor d_ND, Tensor dmemory_MD, const GroupDone& done) const {
  const ArenaScope scope(pass.ctx.scratch());
  const Tensor dstream_ND = pre_norm() ? pass.scratch({in.tokens.rows, width_}) : Tensor();
  for (std::size_t end = blocks_.size(); end > 0; end -= blocks_per_layer_) {
    const std::size_t first = end - blocks_per_layer_;
    const ArenaScope rebuilt(pass.memory);
    if (recompute == Recompute::layer) forward_layer(pass, in, first, saved);
    for (std::size_t i = end; i-- > first;) {
      backward_block(pass, in, i, saved, d_ND, dstream_ND, dmemory_MD);
      done(blocks_[i].group);
    }
  }
  if (!pre_norm()) return;
  const Parameters& p = pass.parameters;
  residual_norm_backward(pass.ctx, norm_arguments(pass, *first_norm_), saved.first_norm, d_ND,
                         {.dsum_in = dstream_ND,
                          .dresidual = d_ND,
                          .dgamma = p.gradient(first_norm_->gamma),
                          .dbeta = p.gradient(first_norm_->beta)});
  done(first_group_);
}

void Stack::backward_block(const Pass& pass, const Input& in, std::size_t i, const Saved& saved,
                           Tensor d_ND, Tensor dstream_ND, Tensor dmemory_MD) const {
  const ArenaScope scope(pass.ctx.scratch());
  const Block& block = blocks_[i];
  const BlockSaved& s = saved.blocks[i];
  const Parameters& p = pass.parameters;
  const bool pre = pre_norm(), last = i + 1 == blocks_.size();

  ResidualNormArgs norm = norm_arguments(pass, block.norm);
  norm.dropout = pass.random.at(block.site, dropout_, in.tokens.ordinals);
  // Post-norm: d_ND is the gradient of the output, and of the next residual at once. Pre-norm: the
  // residual's own gradient travels in dstream_ND.
  const Tensor dresidual_ND = pre ? dstream_ND : d_ND;
  const Tensor dmasked_ND = norm.dropout.on() ? pass.scratch({in.tokens.rows, width_}) : Tensor();
  residual_norm_backward(pass.ctx, norm, s.norm, d_ND,
                         {.dsum_in = pre && !last ? dstream_ND : Tensor(),
                          .dresidual = dresidual_ND,
                          .dbranch = dmasked_ND,
                          .dgamma = p.gradient(block.norm.gamma),
                          .dbeta = p.gradient(block.norm.beta)});
  const Tensor dbranch_ND = norm.dropout.on() ? dmasked_ND : dresidual_ND;
  if (block.attention) {
    block.attention->backward(
        pass, in.tokens, block.cross ? in.keys : in.tokens, in.memory_MD, s.attention, dbranch_ND,
        {.dx_ND = d_ND, .add_to_dx = !pre, .dmemory_MD = block.cross ? dmemory_MD : Tensor()});
  } else {
    block.feed_forward->backward(pass, in.tokens, s.feed_forward, dbranch_ND, d_ND, !pre);
  }
}

}  // namespace octavo
