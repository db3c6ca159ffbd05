#include "trainer/translation_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

/// @param vocabulary  of the target; null for a plan, which does not look at ids.
BatchTranslator make_translator(const Transformer& model, const SearchConfig& search,
                                const Vocabulary* vocabulary) {
  BatchTranslator::Settings settings{.rules = search_rules(search),
                                     .frame = {},
                                     .never_generated = {},
                                     .batch_tokens = search.batch_tokens};
  if (vocabulary != nullptr) {
    const std::span<const std::int32_t> never = vocabulary->never_generated();
    settings.frame = {vocabulary->bos(), vocabulary->eos()};
    settings.never_generated.assign(never.begin(), never.end());
  }
  return {model, settings};
}

WorkMemory loss_memory(const TranslationValidation::PlanSetup& setup) {
  const BatchLimits limits = loss_limits(setup.max_length);
  Context ctx(Device::plan, setup.threads, 0);
  const Parameters parameters(setup.model.table(), ctx, dtype_of(setup.trainer.precision), false);
  Arena arena;
  const Pass pass{ctx, parameters, arena, {}};
  for_row_counts(limits.target_tokens, [&](std::int64_t source, std::int64_t target) {
    const TokenBatch batch = planned_batch({.sentences = std::min(source, target) / 2,
                                            .source_tokens = source,
                                            .target_tokens = target,
                                            .source_longest = setup.max_length,
                                            .target_longest = setup.max_length});
    setup.model.evaluate(pass, batch, setup.trainer.label_smoothing,
                         Tensor(nullptr, {2}, DType::f64), {});
  });
  return {.activations = arena.high_water(), .scratch = ctx.scratch().high_water()};
}

}  // namespace

std::string TranslationValidation::name(const Setup& setup) {
  const SearchRules rules = search_rules(setup.search);
  const auto& sentences = setup.trainer.validation.bleu_sentences;
  const auto& longest = setup.search.max_length;
  const std::string lengths = fmt::format("{} to {} tokens", rules.shortest,
                                          longest ? fmt::format("{}", *longest) : "the preset's");
  return fmt::format("data.dev {}; first lines decoded: {}; {}, beam {}, length penalty {}, {}; {}",
                     setup.dev.content_hash(), sentences ? fmt::format("{}", *sentences) : "all",
                     enum_name(setup.search.preset), rules.beam, rules.alpha, lengths,
                     bleu_signature(setup.bleu));
}

WorkMemory TranslationValidation::plan(const PlanSetup& setup) {
  const WorkMemory loss = loss_memory(setup);
  if (setup.trainer.validation.bleu_sentences == 0) return loss;
  Context ctx(Device::plan, setup.threads, 0);
  const Parameters parameters(setup.model.table(), ctx, dtype_of(setup.trainer.precision), false);
  return loss | make_translator(setup.model, setup.search, nullptr).plan(parameters, setup.threads);
}

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
      translator_(make_translator(setup.model, setup.search, &setup.target.vocabulary())),
      share_(held_out_batches(dev_, source_.vocabulary(), target_.vocabulary(), group.rank(),
                              group.size(), loss_limits(setup.max_length))),
      ctx_(Device::cpu, setup.threads, setup.memory.scratch),
      arena_(setup.memory.activations) {}

ValidationResult TranslationValidation::run(const Parameters& parameters) {
  const Pass pass{ctx_, parameters, arena_, {}};
  ValidationResult result;
  add_loss(pass, result);
  // What computes no numbers can't be decoded; training goes on, and may stop for this very reason.
  if (bleu_sentences_ > 0 && std::isfinite(result.nll)) add_bleu(pass, result);
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
  const std::vector<std::vector<Translation>> found = translator_.translate({&pass, 1}, sources);
  const std::size_t reference = dev_.column("target_text");
  BleuCounter counter(bleu_);
  for (std::size_t i = 0; i < found.size(); ++i) {
    counter.add(target_.decode(found[i].front().ids), dev_.text(reference, rows[i]));
  }
  BleuStatistics statistics = counter.statistics();
  group_.all_reduce_sum(std::span<std::int64_t>(statistics.counts));
  result.bleu = bleu_score(statistics).score;
  result.bleu_signature = bleu_signature(bleu_);
  result.bleu_lines = bleu_sentences_;
  if (found.empty()) return;
  const auto i = static_cast<std::size_t>(runs_ * 37) % found.size();  // another one each time
  result.sample_source = dev_.text(dev_.column("source_text"), rows[i]);
  result.sample_output = target_.decode(found[i].front().ids);
  result.sample_reference = dev_.text(reference, rows[i]);
}

}  // namespace octavo
