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
                                     .source = *data_.subwords.source,
                                     .target = *data_.subwords.target,
                                     .dev = *data_.dev,
                                     .max_length = setup.data.max_length,
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

TrainingData TranslationTask::training_data() const {
  TrainingData data{.corpora = {},
                    .weights = {},
                    .source = data_.subwords.source.get(),
                    .target = data_.subwords.target.get(),
                    .sample = data_config_.subwords.sample,
                    .max_length = data_config_.max_length};
  for (std::size_t i = 0; i < data_.train.size(); ++i) {
    data.corpora.push_back(&data_.train[i]);
    data.weights.push_back(data_config_.train[i].weight);
  }
  return data;
}

void TranslationTask::start(const Start& start) {
  const UpdateSettings settings{.seed = static_cast<std::uint64_t>(config_.seed),
                                .tokens_per_update = config_.tokens_per_update,
                                .rank = group_.rank(),
                                .ranks = group_.size(),
                                .limits = limits(start.max_tokens)};
  prefetcher_ = std::make_unique<Prefetcher>(
      training_data(), settings, Cursor{.epoch = start.epoch, .update = start.update_in_epoch});
}

const UpdateWork& TranslationTask::next() {
  batches_ = &prefetcher_->next();
  const double waited = prefetcher_->waited().count();
  work_ = {.epoch = batches_->cursor.epoch,
           .next_epoch = batches_->next.epoch,
           .next_update = batches_->next.update,
           .micro_batches = static_cast<std::int64_t>(batches_->micro_batches().size()),
           .units = batches_->target_tokens,
           .source_tokens = batches_->source_tokens,
           .target_tokens = batches_->target_tokens,
           .sentences = batches_->sentences,
           .wait_seconds = waited - waited_};
  waited_ = waited;
  return work_;
}

void TranslationTask::run(const Pass& pass, std::int64_t i, double scale, Tensor sums,
                          const GroupDone& done) {
  const TokenBatch& batch = batches_->micro_batches()[static_cast<std::size_t>(i)].batch();
  const Transformer::LossOptions options{.label_smoothing = config_.label_smoothing,
                                         .gradient_scale = scale,
                                         .recompute = config_.recompute};
  model_.forward(pass, batch, options, sums, saved_);
  model_.backward(pass, batch, options, saved_, done);
}

std::string TranslationTask::name_sentences() const {
  constexpr std::size_t kNamed = 3;
  const TrainingData data = training_data();
  const std::vector<SentenceRef>& all = batches_->references;
  std::string names;
  for (std::size_t i = 0; i < std::min(kNamed, all.size()); ++i) {
    names += (i > 0 ? ", " : "") + describe_sentence(data, all[i]);
  }
  return all.size() <= kNamed ? names : fmt::format("{} and {} more", names, all.size() - kNamed);
}

void TranslationTask::plan(const Pass& pass, std::int64_t max_tokens) {
  const ArenaScope scope(pass.memory);
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
