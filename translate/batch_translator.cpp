#include "translate/batch_translator.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/parallel.h"
#include "core/token_batch.h"

namespace octavo {
namespace {

/// A sentence counts as so many tokens at least: its hypotheses have rows of logits, however short.
constexpr std::int64_t kLeastTokens = 32;

/// Outputs are seldom longer than their source by more than this. Memory for those up to the limit
/// is reserved, but the system gives it only to those that grow so long.
constexpr std::int64_t kUsuallyLonger = 50;

}  // namespace

BatchTranslator::BatchTranslator(const Transformer& model, Settings settings)
    : model_(model), settings_(std::move(settings)) {
  const auto banned = static_cast<std::int64_t>(settings_.never_generated.size());
  expect(model.target_vocabulary() - banned >= 2,
         "BatchTranslator: nothing but EOS can be generated");
}

std::int64_t BatchTranslator::limit(std::int64_t source) const {
  return settings_.rules.limit(source, model_.config().max_positions);
}

std::int64_t BatchTranslator::batch_size(std::int64_t longest_source) const {
  const std::int64_t usual = std::min(limit(longest_source), longest_source + kUsuallyLonger);
  const std::int64_t tokens = std::max({longest_source, usual, kLeastTokens});
  return std::max<std::int64_t>(1, settings_.batch_tokens / tokens);
}

ModelScorer::Options BatchTranslator::scorer_options(std::int64_t max_rows,
                                                     std::int64_t max_steps) const {
  const auto banned = static_cast<std::int64_t>(settings_.never_generated.size());
  return {.max_rows = max_rows,
          .max_steps = max_steps,
          .k = pieces_per_row(settings_.rules, model_.target_vocabulary() - banned),
          .eos = settings_.frame.eos,
          .never_generated = settings_.never_generated};
}

WorkMemory BatchTranslator::plan(const Parameters& parameters, int threads) const {
  Context ctx(Device::plan, threads, 0);
  Arena memory;
  const Pass pass{.ctx = ctx, .parameters = parameters, .memory = memory, .random = {}};
  std::int64_t most_rows = 0, most_tokens = 0;
  for_largest_batches(
      max_source(), [&](std::int64_t source) { return batch_size(source); },
      [&](std::int64_t sentences, std::int64_t source) {
        plan_batch(pass, sentences, source);
        most_rows = std::max(most_rows, sentences * settings_.rules.beam);
        most_tokens = std::max(most_tokens, sentences * source);
      });
  // Smaller batches take no more activations, but the product library may want more scratch.
  Arena ignored;
  const Pass scratch_only{.ctx = ctx, .parameters = parameters, .memory = ignored, .random = {}};
  for (std::int64_t rows = kRowMultiple; rows < most_tokens; rows += kRowMultiple) {
    plan_rows(scratch_only, planned_batch(rows / kRowMultiple, kRowMultiple, 1).source);
  }
  for (std::int64_t rows = kDecodeRowMultiple; rows < most_rows; rows += kDecodeRowMultiple) {
    plan_rows(scratch_only, planned_batch(rows, 1, 1).source);
  }
  return {.activations = memory.high_water(), .scratch = ctx.scratch().high_water()};
}

void BatchTranslator::plan_rows(const Pass& pass, const PackedTokens& tokens) const {
  const ArenaScope scope(pass.memory);
  ModelScorer scorer(model_, pass, tokens, model_.encode(pass, tokens),
                     scorer_options(tokens.sentences, 1));
  scorer.compute(std::vector<std::int32_t>(static_cast<std::size_t>(tokens.sentences)));
}

void BatchTranslator::plan_batch(const Pass& pass, std::int64_t sentences,
                                 std::int64_t source) const {
  const ArenaScope scope(pass.memory);
  const PackedTokens tokens = planned_batch(sentences, source, 1).source;
  const Tensor memory_MD = model_.encode(pass, tokens);
  ModelScorer scorer(model_, pass, tokens, memory_MD,
                     scorer_options(sentences * settings_.rules.beam, limit(source)));
  const auto n = static_cast<std::size_t>(sentences);
  scorer.compute(std::vector<std::int32_t>(n));
  if (limit(source) == 1) return;
  // From then on every step takes the same, but for scratch that grows with what is looked at.
  std::vector<std::int32_t> parents;
  for (std::size_t b = 0; b < n; ++b) {
    parents.insert(parents.end(), static_cast<std::size_t>(settings_.rules.beam),
                   static_cast<std::int32_t>(b));
  }
  scorer.select(parents, std::vector<std::int32_t>(n, settings_.rules.beam));
  const std::vector<std::int32_t> newest(parents.size());
  const bool longest = source == max_source();
  for (std::int64_t step = 1; step < (longest ? limit(source) : 2); ++step) scorer.compute(newest);
}

std::vector<std::vector<Translation>> BatchTranslator::translate(
    std::span<const Pass> workers, std::span<const std::vector<std::int32_t>> sources) const {
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sources[a].size() > sources[b].size();
  });
  const std::vector<std::size_t> ends = ends_of_batches(sources, order, workers.size());
  std::vector<std::vector<Translation>> results(sources.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&](const Pass& pass) {
    std::vector<const std::vector<std::int32_t>*> batch;
    for (std::size_t b = next++; b < ends.size(); b = next++) {
      const std::size_t begin = b == 0 ? 0 : ends[b - 1];
      batch.clear();
      for (std::size_t i = begin; i < ends[b]; ++i) batch.push_back(&sources[order[i]]);
      std::vector<std::vector<Translation>> found = translate_batch(pass, batch);
      for (std::size_t i = begin; i < ends[b]; ++i) results[order[i]] = std::move(found[i - begin]);
    }
  };
  const auto count = static_cast<std::int64_t>(workers.size());
  parallel_for(static_cast<int>(count), count, 1, [&](std::int64_t begin, std::int64_t end) {
    try {
      for (std::int64_t w = begin; w < end; ++w) work(workers[static_cast<std::size_t>(w)]);
    } catch (...) {
      next = ends.size();  // the others stop after the batch they are at
      throw;
    }
  });
  return results;
}

// Batches are cut from the longest sources to the shortest; few sources are shared evenly.
std::vector<std::size_t> BatchTranslator::ends_of_batches(
    std::span<const std::vector<std::int32_t>> sources, std::span<const std::size_t> order,
    std::size_t workers) const {
  const std::size_t share = (order.size() + workers - 1) / std::max<std::size_t>(1, workers);
  std::vector<std::size_t> ends;
  for (std::size_t begin = 0; begin < order.size(); begin = ends.back()) {
    const auto longest = static_cast<std::int64_t>(sources[order[begin]].size());
    expect(longest <= max_source(), "BatchTranslator: a source is longer than the model takes");
    const auto size = std::min(share, static_cast<std::size_t>(batch_size(longest)));
    ends.push_back(std::min(order.size(), begin + size));
  }
  return ends;
}

std::vector<std::vector<Translation>> BatchTranslator::translate_batch(
    const Pass& pass, std::span<const std::vector<std::int32_t>* const> sources) const {
  const ArenaScope scope(pass.memory);
  PackedTokensBuilder builder;
  std::vector<std::int64_t> limits;
  for (const std::vector<std::int32_t>* source : sources) {
    expect(!source->empty(), "BatchTranslator: a source has no EOS");
    builder.add(*source, 0);
    limits.push_back(limit(static_cast<std::int64_t>(source->size())));
  }
  const PackedTokens tokens = builder.finish();
  const Tensor memory_MD = model_.encode(pass, tokens);
  ModelScorer scorer(
      model_, pass, tokens, memory_MD,
      scorer_options(tokens.sentences * settings_.rules.beam, limit(tokens.longest)));
  return beam_search(scorer, settings_.rules, settings_.frame, limits);
}

}  // namespace octavo
