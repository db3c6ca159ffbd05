#include "trainer/translation_task.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace octavo {

TranslationTask::TranslationTask(const Setup& setup, Group& group)
    : data_config_(setup.data),
      config_(setup.trainer),
      search_(setup.search),
      bleu_(setup.bleu),
      threads_(setup.threads),
      group_(group),
      data_(open_prepared(setup.data)),
      planned_({.model = setup.model,
                .source_vocabulary = data_.subwords.source->vocabulary().size(),
                .target_vocabulary = data_.subwords.target->vocabulary().size(),
                .max_length = setup.data.max_length,
                .trainer = setup.trainer,
                .search = setup.search,
                .validates = data_.dev.has_value(),
                .threads = setup.threads}) {}

TranslationValidation::Setup TranslationTask::validation_setup() const {
  return {.model = planned_.model(),
          .source = *data_.subwords.source,
          .target = *data_.subwords.target,
          .dev = *data_.dev,
          .max_length = data_config_.max_length,
          .trainer = config_,
          .search = search_,
          .bleu = bleu_,
          .threads = threads_,
          .memory = planned_.validation_memory()};
}

void TranslationTask::start(const Start& start) {
  if (validates()) {
    validation_ = std::make_unique<TranslationValidation>(validation_setup(), group_);
  }
  const UpdateSettings settings{.seed = static_cast<std::uint64_t>(config_.seed),
                                .tokens_per_update = config_.tokens_per_update,
                                .rank = group_.rank(),
                                .ranks = group_.size(),
                                .limits = planned_.limits(start.max_tokens)};
  prefetcher_ =
      std::make_unique<Prefetcher>(training_data(data_, data_config_), settings,
                                   Cursor{.epoch = start.epoch, .update = start.update_in_epoch});
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
  planned_.model().forward(pass, batch, options, sums, saved_);
  planned_.model().backward(pass, batch, options, saved_, done);
}

std::string TranslationTask::name_sentences() const {
  constexpr std::size_t kNamed = 3;
  const TrainingData data = training_data(data_, data_config_);
  const std::vector<SentenceRef>& all = batches_->references;
  std::string names;
  for (std::size_t i = 0; i < std::min(kNamed, all.size()); ++i) {
    names += (i > 0 ? ", " : "") + describe_sentence(data, all[i]);
  }
  return all.size() <= kNamed ? names : fmt::format("{} and {} more", names, all.size() - kNamed);
}

ValidationResult TranslationTask::validate(const Parameters& parameters) {
  expect(validation_ != nullptr, "TranslationTask::validate: there is no data.dev");
  return validation_->run(parameters);
}

std::string TranslationTask::validation_name() const {
  return validates() ? TranslationValidation::name(validation_setup()) : "";
}

}  // namespace octavo
