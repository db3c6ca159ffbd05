#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/layers/pass.h"
#include "model/transformer.h"
#include "translate/model_scorer.h"
#include "translate/search.h"
#include "translate/work_memory.h"

namespace octavo {

/// Translates sentences of ids, any number of them, with whatever parameters a Pass has.
///
/// Sentences are sorted by length and cut into batches; what is returned is in the order of what
/// came. Nothing but small host vectors is allocated while translating: everything else lives in
/// the Pass' arenas, which plan() measures, so that a trainer can lend its own.
class BatchTranslator {
 public:
  struct Settings {
    SearchRules rules;
    Frame frame;
    std::vector<std::int32_t> never_generated;  ///< PAD, BOS, UNK, ...; not EOS
    /// A batch has at most this many sentences x tokens; one sentence is always allowed. Tokens are
    /// those of the longest source and 50 more, or of the longest output if that is less; at least
    /// those of the source, and 32.
    std::int64_t batch_tokens;
  };
  /// `model` must outlive the translator.
  BatchTranslator(const Transformer& model, Settings settings);

  /// What any batch takes, by running the largest ones on a plan.
  /// @param parameters  those to translate with, or others of the same types on a plan.
  WorkMemory plan(const Parameters& parameters, int threads) const;

  /// @param workers  batches are translated at the same time with each of these; with several,
  ///                 each has one thread.
  /// @param sources  ids of each sentence, EOS at the end, at most max_source() of them.
  /// @return for each source its translations, best first: at least one, at most rules.nbest.
  /// @throws InternalError  a source is empty or too long.
  std::vector<std::vector<Translation>> translate(
      std::span<const Pass> workers, std::span<const std::vector<std::int32_t>> sources) const;

  /// Tokens of the longest source, EOS counted.
  std::int64_t max_source() const { return model_.config().max_positions; }
  /// Tokens of the longest output for a source, EOS counted.
  std::int64_t limit(std::int64_t source) const;

 private:
  std::int64_t batch_size(std::int64_t longest_source) const;
  /// Of the sources in this order, sorted by length.
  std::vector<std::size_t> ends_of_batches(std::span<const std::vector<std::int32_t>> sources,
                                           std::span<const std::size_t> order,
                                           std::size_t workers) const;
  void plan_rows(const Pass& pass, const PackedTokens& tokens) const;
  void plan_batch(const Pass& pass, std::int64_t sentences, std::int64_t source) const;
  ModelScorer::Options scorer_options(std::int64_t max_rows, std::int64_t max_steps) const;
  std::vector<std::vector<Translation>> translate_batch(
      const Pass& pass, std::span<const std::vector<std::int32_t>* const> sources) const;

  const Transformer& model_;
  Settings settings_;
};

}  // namespace octavo
