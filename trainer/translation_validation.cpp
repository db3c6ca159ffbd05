#include "trainer/translation_validation.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/token_batch.h"

namespace octavo {

namespace {

/// Rows of either side in one batch of the loss, unless one sentence has more.
constexpr std::int64_t kLossRows = 4096;

BatchLimits loss_limits(std::int64_t max_length) {
  const std::int64_t rows = std::max(kLossRows, round_up(max_length, kRowMultiple));
  return {.source_tokens = rows,
          .target_tokens = rows,
          .sentences = rows,
          .longest = max_length,
          .sum_squares = rows * max_length};
}

BatchTranslator make_translator(const TranslationValidation::Setup& setup) {
  const Vocabulary& target = setup.target.vocabulary();
  const std::span<const std::int32_t> never = target.never_generated();
  return {setup.model,
          {.rules = search_rules(setup.search),
           .frame = {target.bos(), target.eos()},
           .never_generated = {never.begin(), never.end()},
           .batch_tokens = setup.search.batch_tokens}};
}

}  // namespace

TranslationValidation::TranslationValidation(const Setup& setup, Group& group)
    : model_(setup.model),
      source_(setup.source),
      target_(setup.target),
      dev_(setup.dev),
      group_(group),
      label_smoothing_(setup.trainer.label_smoothing),
      bleu_sentences_(
          std::min(setup.trainer.validation.bleu_sentences.value_or(dev_.rows()), dev_.rows())),
      bleu_(setup.bleu),
      compute_(dtype_of(setup.trainer.precision)),
      threads_(setup.threads),
      translator_(make_translator(setup)),
      max_length_(setup.max_length),
      share_(held_out_batches(dev_, source_.vocabulary(), target_.vocabulary(), group.rank(),
                              group.size(), loss_limits(max_length_))),
      memory_(loss_memory()) {
  if (bleu_sentences_ > 0) memory_ = memory_ | translator_.plan(compute_, threads_);
  ctx_ = std::make_unique<Context>(Device::cpu, threads_, memory_.scratch);
  arena_ = std::make_unique<Arena>(memory_.activations);
}

WorkMemory TranslationValidation::loss_memory() const {
  const BatchLimits limits = loss_limits(max_length_);
  Context plan(Device::plan, threads_, 0);
  const Parameters parameters(model_.table(), plan, compute_, false);
  Arena arena;
  const Pass pass{plan, parameters, arena, {}};
  const TokenBatch batch = planned_batch({.sentences = limits.sentences / 2,
                                          .source_tokens = limits.source_tokens,
                                          .target_tokens = limits.target_tokens,
                                          .source_longest = max_length_,
                                          .target_longest = max_length_});
  model_.evaluate(pass, batch, label_smoothing_, Tensor(nullptr, {2}, DType::f64), {});
  return {.activations = arena.high_water(), .scratch = plan.scratch().high_water()};
}

ValidationResult TranslationValidation::run(const Parameters& parameters) {
  const Pass pass{*ctx_, parameters, *arena_, {}};
  ValidationResult result;
  add_loss(pass, result);
  if (bleu_sentences_ > 0) add_bleu(pass, result);
  ++runs_;
  return result;
}

void TranslationValidation::add_loss(const Pass& pass, ValidationResult& result) const {
  double totals[3] = {0, 0, 0};  // loss, -log p, target tokens
  const Tensor sums(totals, {2}, DType::f64);
  for (const HeldOutBatch& held_out : share_) {
    const TokenBatch& batch = held_out.batch.batch();
    model_.evaluate(pass, batch, label_smoothing_, sums, {});
    totals[2] += static_cast<double>(batch.target.tokens);
  }
  group_.all_reduce_sum(std::span<double>(totals));
  result.loss = totals[0] / totals[2];
  result.nll = totals[1] / totals[2];
}

void TranslationValidation::add_bleu(const Pass& pass, ValidationResult& result) const {
  const std::size_t source_column = dev_.column("source");
  std::vector<std::vector<std::int32_t>> sources;
  std::vector<std::int64_t> rows;
  for (const HeldOutBatch& held_out : share_) {
    for (const std::int64_t row : held_out.rows) {
      if (row >= bleu_sentences_) continue;
      rows.push_back(row);
      dev_.append_tokens(source_column, row, sources.emplace_back());
      sources.back().push_back(source_.vocabulary().eos());
    }
  }
  const std::vector<std::vector<Translation>> found = translator_.translate(pass, sources);
  const std::size_t reference = dev_.column("target_text");
  BleuCounter counter(bleu_);
  for (std::size_t i = 0; i < found.size(); ++i) {
    counter.add(target_.decode(found[i].front().ids), dev_.text(reference, rows[i]));
  }
  BleuStatistics statistics = counter.statistics();
  group_.all_reduce_sum(std::span<std::int64_t>(statistics.counts));
  result.bleu = bleu_score(statistics).score;
  result.bleu_signature = bleu_signature(bleu_);
  if (found.empty()) return;
  const auto i = static_cast<std::size_t>(runs_ * 37) % found.size();  // another one each time
  result.sample_source = dev_.text(dev_.column("source_text"), rows[i]);
  result.sample_output = target_.decode(found[i].front().ids);
  result.sample_reference = dev_.text(reference, rows[i]);
}

}  // namespace octavo
