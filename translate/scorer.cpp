#include "translate/scorer.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "model/ops/elementwise.h"

namespace octavo {
namespace {

std::size_t longest_side(const IdPair& pair) {
  return std::max(pair.source.size(), pair.target.size());
}

/// Log-probabilities of tokens added up by sentence.
template <typename T>
std::vector<double> sums_by_sentence(const PackedTokens& target, const Tensor& of_tokens) {
  const auto* offsets = target.offsets.data<std::int32_t>();
  const T* values = of_tokens.data<T>();
  std::vector<double> sums;
  for (std::int64_t b = 0; b < target.sentences; ++b) {
    sums.push_back(std::accumulate(values + offsets[b], values + offsets[b + 1], 0.0));
  }
  return sums;
}

}  // namespace

PairScorer::PairScorer(const Transformer& model, std::int32_t bos, std::int64_t batch_tokens)
    : model_(model), bos_(bos), batch_tokens_(batch_tokens) {}

std::int64_t PairScorer::batch_size(std::int64_t longest) const {
  return std::max<std::int64_t>(1, batch_tokens_ / longest);
}

WorkMemory PairScorer::plan(DType compute, int threads) const {
  Context ctx(Device::plan, threads, 0);
  const Parameters parameters(model_.table(), ctx, compute, false);
  Arena memory;
  const Pass pass{.ctx = ctx, .parameters = parameters, .memory = memory, .random = {}};
  std::int64_t most_rows = 0;
  for_largest_batches(
      max_length(), [&](std::int64_t longest) { return batch_size(longest); },
      [&](std::int64_t sentences, std::int64_t longest) {
        const TokenBatch batch = planned_batch(sentences, longest, longest);
        score_batch(pass, batch);
        most_rows = std::max(most_rows, batch.target.rows);
      });
  for_row_counts(most_rows, [&](std::int64_t source, std::int64_t target) {
    score_batch(pass, planned_batch({.sentences = std::min(source, target) / kRowMultiple,
                                     .source_tokens = source,
                                     .target_tokens = target,
                                     .source_longest = max_length(),
                                     .target_longest = max_length()}));
  });
  return {.activations = memory.high_water(), .scratch = ctx.scratch().high_water()};
}

std::vector<double> PairScorer::score(const Pass& pass, std::span<const IdPair> pairs) const {
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return longest_side(pairs[a]) > longest_side(pairs[b]);
  });
  std::vector<double> results(pairs.size());
  HostBatch batch;
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const auto longest = static_cast<std::int64_t>(longest_side(pairs[order[begin]]));
    expect(longest <= max_length(), "PairScorer: a sentence is longer than the model takes");
    end = std::min(order.size(), begin + static_cast<std::size_t>(batch_size(longest)));
    batch.clear();
    for (std::size_t i = begin; i < end; ++i) {
      batch.add(pairs[order[i]].source, pairs[order[i]].target, bos_, 0, 0);
    }
    const std::vector<double> scores = score_batch(pass, batch.finish());
    for (std::size_t i = begin; i < end; ++i) results[order[i]] = scores[i - begin];
  }
  return results;
}

std::vector<double> PairScorer::score_batch(const Pass& pass, const TokenBatch& batch) const {
  const ArenaScope scope(pass.memory);
  const Tensor sums = pass.memory.allocate({2}, DType::f64);
  const Tensor log_likelihood = pass.allocate_statistics({batch.target.rows});
  zero(pass.ctx, sums);
  model_.evaluate(pass, batch, 0, sums, log_likelihood);
  if (pass.ctx.device() == Device::plan) return {};
  return log_likelihood.dtype() == DType::f64
             ? sums_by_sentence<double>(batch.target, log_likelihood)
             : sums_by_sentence<float>(batch.target, log_likelihood);
}

}  // namespace octavo
