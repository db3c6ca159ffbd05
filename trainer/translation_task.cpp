#include "trainer/translation_task.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace octavo {

TranslationTask::TranslationTask(const Setup& setup, Group& group)
    : data_config_(setup.data),
      config_(setup.trainer),
      group_(group),
      data_(open_prepared(setup.data)),
      model_(setup.model, data_.subwords.source->vocabulary().size(),
             data_.subwords.target->vocabulary().size()) {
  const ValidationConfig& validation = setup.trainer.validation;
  if (data_.dev && (validation.every_updates || validation.every_minutes)) {
    validation_ = std::make_unique<TranslationValidation>(
        TranslationValidation::Setup{.model = model_,
                                     .source_eos = data_.subwords.source->vocabulary().eos(),
                                     .target_subwords = *data_.subwords.target,
                                     .dev = *data_.dev,
                                     .trainer = setup.trainer,
                                     .search = setup.search,
                                     .bleu = setup.bleu,
                                     .threads = setup.threads},
        group);
  }
}

BatchLimits TranslationTask::limits(std::int64_t max_tokens) const {
  // Source sides are as long as target sides, more or less; attention's weights are never stored,
  // so their number needs no limit of its own.
  const std::int64_t longest = data_config_.max_length;
  return {.source_tokens = max_tokens,
          .target_tokens = max_tokens,
          .sentences = max_tokens,
          .longest = longest,
          .sum_squares = max_tokens * longest};
}

std::int64_t TranslationTask::smallest_max_tokens() const {
  return round_up(data_config_.max_length, kRowMultiple);
}

void TranslationTask::start(const Start& start) {
  prefetcher_ = std::make_unique<Prefetcher>(
      Prefetcher::Setup{.data = data_,
                        .sample = data_config_.subwords.sample,
                        .seed = static_cast<std::uint64_t>(config_.seed),
                        .tokens_per_update = config_.tokens_per_update,
                        .rank = group_.rank(),
                        .ranks = group_.size(),
                        .limits = limits(start.max_tokens)},
      Cursor{.epoch = start.epoch, .update = start.update_in_epoch});
}

const UpdateWork& TranslationTask::next() {
  batches_ = &prefetcher_->next();
  work_ = {.epoch = batches_->epoch,
           .update_in_epoch = batches_->update,
           .micro_batches = static_cast<std::int64_t>(batches_->batches.size()),
           .units = batches_->target_tokens,
           .source_tokens = batches_->source_tokens,
           .target_tokens = batches_->target_tokens,
           .sentences = batches_->sentences,
           .wait_seconds = batches_->wait_seconds};
  return work_;
}

void TranslationTask::run(const Pass& pass, std::int64_t i, double scale, Tensor sums,
                          const GroupDone& done) {
  const TokenBatch& batch = batches_->batches[static_cast<std::size_t>(i)].batch();
  const Transformer::LossOptions options{.label_smoothing = config_.label_smoothing,
                                         .gradient_scale = scale,
                                         .recompute = config_.recompute};
  model_.forward(pass, batch, options, sums, saved_);
  model_.backward(pass, batch, options, saved_, done);
}

std::string TranslationTask::name_sentences() const {
  return batches_->names();
}

void TranslationTask::plan(const Pass& pass, std::int64_t max_tokens) {
  const TokenBatch batch = planned_batch({.sentences = max_tokens / 2,
                                          .source_tokens = max_tokens,
                                          .target_tokens = max_tokens,
                                          .source_longest = data_config_.max_length,
                                          .target_longest = data_config_.max_length});
  const Transformer::LossOptions options{.label_smoothing = config_.label_smoothing,
                                         .recompute = config_.recompute};
  Transformer::Saved saved;
  model_.forward(pass, batch, options, Tensor(nullptr, {2}, DType::f64), saved);
  model_.backward(pass, batch, options, saved, [](int) {});
}

ValidationResult TranslationTask::validate(const Parameters& parameters) {
  expect(validation_ != nullptr, "TranslationTask::validate: there is no data.dev");
  return validation_->run(parameters);
}

std::int64_t TranslationTask::validation_bytes(bool own_weights) const {
  if (validation_ == nullptr) return 0;
  Context plan(Device::plan, 1, 0);
  const Parameters weights(model_.table(), plan, dtype_of(config_.precision), false);
  return validation_->bytes() + (own_weights ? weights.bytes() : 0);
}

}  // namespace octavo
