#include "model/transformer.h"

#include <fmt/format.h>

#include "core/error.h"
#include "model/ops/elementwise.h"
#include "model/ops/linear.h"
#include "model/ops/projected_loss.h"

namespace octavo {

namespace {

constexpr int kSourceSite = 1, kTargetSite = 2;

ModelConfig checked(const ModelConfig& config, std::int64_t source, std::int64_t target) {
  expect(config.head_width || config.width % config.heads == 0,
         "Transformer: heads must divide width");
  expect(config.positions != PositionKind::sinusoidal || config.width % 2 == 0,
         "Transformer: sinusoidal positions need an even width");
  if (config.share_embeddings == SharedEmbeddings::all && source != target) {
    throw UserError(fmt::format(
        "model.share_embeddings is 'all', but the source vocabulary has {} pieces and the target's "
        "{}: set data.subwords.joint: true, or share_embeddings: decoder",
        source, target));
  }
  return config;
}

}  // namespace

Transformer::Transformer(const ModelConfig& config, std::int64_t source_vocabulary,
                         std::int64_t target_vocabulary)
    : config_(checked(config, source_vocabulary, target_vocabulary)),
      source_vocabulary_(source_vocabulary),
      target_vocabulary_(target_vocabulary),
      source_(config_,
              config.share_embeddings == SharedEmbeddings::all ? "embedding" : "source_embedding",
              "source_positions", source_vocabulary, nullptr, kSourceSite, table_),
      encoder_(config_, Stack::Kind::encoder, table_),
      target_(config_, "target_embedding", "target_positions", target_vocabulary, shared_source(),
              kTargetSite, table_),
      decoder_(config_, Stack::Kind::decoder, table_),
      output_group_(table_.begin_group()),
      output_(declare_output()) {
  table_.seal();
}

const ParameterSpan* Transformer::shared_source() const {
  if (config_.share_embeddings != SharedEmbeddings::all) return nullptr;
  return &source_.weight();
}

ParameterSpan Transformer::declare_output() {
  if (config_.share_embeddings != SharedEmbeddings::none) return target_.weight();
  return table_.add_matrix("output.weight", target_vocabulary_, config_.width, Init::embedding,
                           round_up(target_vocabulary_, kVocabularyMultiple));
}

std::vector<ParameterSpan> Transformer::product_weights() const {
  std::vector<ParameterSpan> weights{output_};
  const std::vector<Parameter>& all = table_.parameters();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].shape.size() < 2 || all[i].init == Init::embedding) continue;
    if (all[i].stacked) {
      ++weights.back().count;
    } else {
      weights.push_back({.first = static_cast<int>(i)});
    }
  }
  return weights;
}

std::int64_t Transformer::padded_target_vocabulary() const {
  return round_up(target_vocabulary_, kVocabularyMultiple);
}

void Transformer::forward(const Pass& pass, const TokenBatch& batch, const LossOptions& options,
                          Tensor sums, Saved& saved) const {
  const std::int64_t N = batch.target.rows, M = batch.source.rows, D = config_.width;
  const PackedTokens& source = batch.source;
  const PackedTokens& target = batch.target;
  saved.source_MD = pass.allocate({M, D});
  source_.forward(pass, source, saved.source_MD);
  saved.memory_MD =
      encoder_.forward(pass, {.tokens = source, .keys = source, .x_ND = saved.source_MD},
                       options.recompute, saved.encoder);
  saved.target_ND = pass.allocate({N, D});
  target_.forward(pass, target, saved.target_ND);
  const Tensor output_ND = decoder_.forward(
      pass,
      {.tokens = target, .keys = source, .x_ND = saved.target_ND, .memory_MD = saved.memory_MD},
      options.recompute, saved.decoder);
  saved.doutput_ND = pass.allocate({N, D});
  projected_loss(
      pass.ctx,
      {.x = output_ND,
       .weight = pass.parameters.weight(output_),
       .labels = batch.labels,
       .vocabulary = target_vocabulary_,
       .label_smoothing = options.label_smoothing,
       .gradient_scale = options.gradient_scale},
      {.sums = sums, .dx = saved.doutput_ND, .dweight = pass.parameters.gradient(output_)});
}

void Transformer::backward(const Pass& pass, const TokenBatch& batch, const LossOptions& options,
                           Saved& saved, const GroupDone& done) const {
  const ArenaScope scope(pass.ctx.scratch());
  const PackedTokens& source = batch.source;
  const PackedTokens& target = batch.target;
  done(output_group_);
  const Tensor dmemory_MD = pass.scratch({source.rows, config_.width});
  zero(pass.ctx, dmemory_MD);
  decoder_.backward(
      pass,
      {.tokens = target, .keys = source, .x_ND = saved.target_ND, .memory_MD = saved.memory_MD},
      options.recompute, saved.decoder, saved.doutput_ND, dmemory_MD, done);
  target_.backward(pass, target, saved.doutput_ND);
  done(target_.group());
  encoder_.backward(pass, {.tokens = source, .keys = source, .x_ND = saved.source_MD},
                    options.recompute, saved.encoder, dmemory_MD, {}, done);
  source_.backward(pass, source, dmemory_MD);
  done(source_.group());
}

void Transformer::evaluate(const Pass& pass, const TokenBatch& batch, double label_smoothing,
                           Tensor sums, Tensor log_likelihood) const {
  const ArenaScope scope(pass.memory);
  const PackedTokens& source = batch.source;
  const PackedTokens& target = batch.target;
  const Tensor memory_MD = encode(pass, source);
  const Tensor target_ND = pass.allocate({target.rows, config_.width});
  target_.forward(pass, target, target_ND);
  Stack::Saved saved;
  const Tensor output_ND = decoder_.forward(
      pass, {.tokens = target, .keys = source, .x_ND = target_ND, .memory_MD = memory_MD},
      Recompute::layer, saved);
  projected_loss(pass.ctx,
                 {.x = output_ND,
                  .weight = pass.parameters.weight(output_),
                  .labels = batch.labels,
                  .vocabulary = target_vocabulary_,
                  .label_smoothing = label_smoothing},
                 {.sums = sums, .log_likelihood = log_likelihood});
}

Tensor Transformer::encode(const Pass& pass, const PackedTokens& source) const {
  const Tensor source_MD = pass.allocate({source.rows, config_.width});
  source_.forward(pass, source, source_MD);
  Stack::Saved saved;
  return encoder_.forward(pass, {.tokens = source, .keys = source, .x_ND = source_MD},
                          Recompute::layer, saved);
}

void Transformer::project(const Pass& pass, const Tensor& output_ND, Tensor logits) const {
  linear_forward(pass.ctx, pass.parameters.linear(output_ND, output_), logits);
}

}  // namespace octavo
