#include "trainer/translation_validation.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/token_batch.h"

namespace octavo {

namespace {

/// Rows of a side in one batch of the loss; one sentence is always allowed.
constexpr std::int64_t kLossRows = 4096;

}  // namespace

TranslationValidation::TranslationValidation(const Setup& setup, Group& group)
    : model_(setup.model),
      subwords_(setup.target_subwords),
      dev_(setup.dev),
      group_(group),
      label_smoothing_(setup.trainer.label_smoothing),
      bleu_sentences_(
          std::min(setup.trainer.validation.bleu_sentences.value_or(dev_.rows()), dev_.rows())),
      bleu_(setup.bleu),
      compute_(dtype_of(setup.trainer.precision)),
      threads_(setup.threads),
      translator_(model_, {.rules = search_rules(setup.search),
                           .frame = {subwords_.vocabulary().bos(), subwords_.vocabulary().eos()},
                           .never_generated = {subwords_.vocabulary().never_generated().begin(),
                                               subwords_.vocabulary().never_generated().end()},
                           .batch_tokens = setup.search.batch_tokens}) {
  take_share(setup.source_eos);
  memory_ = loss_memory();
  if (bleu_sentences_ > 0) memory_ = memory_ | translator_.plan(compute_, threads_);
  ctx_ = std::make_unique<Context>(Device::cpu, threads_, memory_.scratch);
  arena_ = std::make_unique<Arena>(memory_.activations);
}

void TranslationValidation::take_share(std::int32_t source_eos) {
  const std::size_t source = dev_.column("source"), target = dev_.column("target");
  std::vector<std::int64_t> order(static_cast<std::size_t>(dev_.rows()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return dev_.length(target, a) < dev_.length(target, b);
  });
  for (std::size_t i = static_cast<std::size_t>(group_.rank()); i < order.size();
       i += static_cast<std::size_t>(group_.size())) {
    Pair pair{.row = order[i], .source = {}, .target = {}};
    dev_.append_tokens(source, pair.row, pair.source);
    dev_.append_tokens(target, pair.row, pair.target);
    pair.source.push_back(source_eos);
    pair.target.push_back(subwords_.vocabulary().eos());
    share_.push_back(std::move(pair));
  }
}

std::size_t TranslationValidation::batch_end(std::size_t begin) const {
  std::size_t source = 0, target = 0, end = begin;
  for (; end < share_.size(); ++end) {
    source += share_[end].source.size();
    target += share_[end].target.size();
    if (end > begin && std::max(source, target) > static_cast<std::size_t>(kLossRows)) break;
  }
  return end;
}

WorkMemory TranslationValidation::loss_memory() const {
  std::int64_t source = 1, target = 1;
  for (const Pair& pair : share_) {
    source = std::max(source, static_cast<std::int64_t>(pair.source.size()));
    target = std::max(target, static_cast<std::int64_t>(pair.target.size()));
  }
  Context plan(Device::plan, threads_, 0);
  const Parameters parameters(model_.table(), plan, compute_, false);
  Arena arena;
  const Pass pass{plan, parameters, arena, {}};
  const TokenBatch batch = planned_batch({.sentences = static_cast<std::int64_t>(share_.size()),
                                          .source_tokens = std::max(source, kLossRows),
                                          .target_tokens = std::max(target, kLossRows),
                                          .source_longest = source,
                                          .target_longest = target});
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

void TranslationValidation::add_loss(const Pass& pass, ValidationResult& result) {
  double totals[3] = {0, 0, 0};  // loss, -log p, target tokens
  const Tensor sums(totals, {2}, DType::f64);
  HostBatch batch;
  for (std::size_t begin = 0; begin < share_.size();) {
    const std::size_t end = batch_end(begin);
    batch.clear();
    for (std::size_t i = begin; i < end; ++i) {
      batch.add(share_[i].source, share_[i].target, subwords_.vocabulary().bos(), 0, 0);
      totals[2] += static_cast<double>(share_[i].target.size());
    }
    model_.evaluate(pass, batch.finish(), label_smoothing_, sums, {});
    begin = end;
  }
  group_.all_reduce_sum(std::span<double>(totals));
  result.loss = totals[0] / totals[2];
  result.nll = totals[1] / totals[2];
}

void TranslationValidation::add_bleu(const Pass& pass, ValidationResult& result) {
  std::vector<std::vector<std::int32_t>> sources;
  std::vector<std::int64_t> rows;
  for (const Pair& pair : share_) {
    if (pair.row >= bleu_sentences_) continue;
    sources.push_back(pair.source);
    rows.push_back(pair.row);
  }
  const std::vector<std::vector<Translation>> found = translator_.translate(pass, sources);
  const std::size_t reference = dev_.column("target_text");
  BleuCounter counter(bleu_);
  for (std::size_t i = 0; i < found.size(); ++i) {
    counter.add(subwords_.decode(found[i].front().ids), dev_.text(reference, rows[i]));
  }
  BleuStatistics statistics = counter.statistics();
  group_.all_reduce_sum(std::span<std::int64_t>(statistics.counts));
  result.bleu = bleu_score(statistics).score;
  result.bleu_signature = bleu_signature(bleu_);
  if (found.empty()) return;
  // A prime step, so that samples of all lengths come by.
  const auto i = static_cast<std::size_t>(runs_ * 37) % found.size();
  result.sample_source = dev_.text(dev_.column("source_text"), rows[i]);
  result.sample_output = subwords_.decode(found[i].front().ids);
  result.sample_reference = dev_.text(reference, rows[i]);
}

}  // namespace octavo
