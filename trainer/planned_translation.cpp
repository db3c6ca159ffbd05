#include "trainer/planned_translation.h"

#include <algorithm>

#include "core/recorder.h"
#include "core/token_batch.h"
#include "trainer/translation_validation.h"

namespace octavo {

PlannedTranslation::PlannedTranslation(const Setup& setup)
    : model_(setup.model, setup.source_vocabulary, setup.target_vocabulary),
      config_(setup.trainer),
      max_length_(setup.max_length),
      threads_(setup.threads) {
  if (setup.validates && setup.trainer.validation.on()) {
    validation_ = TranslationValidation::plan({.model = model_,
                                               .max_length = max_length_,
                                               .trainer = setup.trainer,
                                               .search = setup.search,
                                               .threads = threads_});
  }
}

BatchLimits PlannedTranslation::limits(std::int64_t max_tokens) const {
  // Source sides are as long as target sides, more or less; attention's weights are never stored,
  // so their number needs no limit of its own.
  return {.source_tokens = max_tokens,
          .target_tokens = max_tokens,
          .sentences = max_tokens,
          .longest = max_length_,
          .sum_squares = max_tokens * max_length_};
}

std::int64_t PlannedTranslation::smallest_max_tokens() const {
  return round_up(max_length_, kRowMultiple);
}

void PlannedTranslation::run(const Pass& pass, const TokenBatch& batch) const {
  const Transformer::LossOptions options{.label_smoothing = config_.label_smoothing,
                                         .recompute = config_.recompute};
  Transformer::Saved saved;
  model_.forward(pass, batch, options, Tensor(nullptr, {2}, DType::f64), saved);
  model_.backward(pass, batch, options, saved, [](int) {});
}

void PlannedTranslation::plan(const Pass& pass, std::int64_t max_tokens) const {
  for_row_counts(max_tokens, [&](std::int64_t source, std::int64_t target) {
    const ArenaScope scope(pass.memory);
    run(pass, planned_batch({.sentences = std::min(source, target) / 2,
                             .source_tokens = source,
                             .target_tokens = target,
                             .source_longest = max_length_,
                             .target_longest = max_length_}));
  });
}

std::int64_t PlannedTranslation::flops(const TokenBatch& batch) const {
  OpList ops;
  Context ctx(Device::plan, threads_, 0);
  const Parameters parameters(model_.table(), ctx, dtype_of(config_.precision), true);
  Arena activations;
  ctx.set_recorder(&ops);
  run({ctx, parameters, activations, {.training = true, .seed = 0, .update = 0}}, batch);
  ctx.set_recorder(nullptr);
  return ops.flops();
}

std::int64_t PlannedTranslation::validation_bytes(bool own_weights) const {
  const std::int64_t bytes = validation_.activations + validation_.scratch;
  if (bytes == 0 || !own_weights) return bytes;
  Context plan(Device::plan, 1, 0);
  const Parameters weights(model_.table(), plan, dtype_of(config_.precision), false);
  return bytes + weights.bytes();
}

}  // namespace octavo
