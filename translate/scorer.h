#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/dtype.h"
#include "core/token_batch.h"
#include "model/layers/pass.h"
#include "model/transformer.h"
#include "translate/work_memory.h"

namespace octavo {

/// A sentence and its translation as ids, each with EOS at the end and without BOS.
struct IdPair {
  std::vector<std::int32_t> source, target;
};

/// Log-probabilities of given translations, in batches of bounded memory.
class PairScorer {
 public:
  /// @param batch_tokens  a batch has at most this many sentences x longest side; one pair is
  ///                      always allowed.
  PairScorer(const Transformer& model, std::int32_t bos, std::int64_t batch_tokens);

  /// What any batch takes, by running the largest ones on a plan.
  WorkMemory plan(DType compute, int threads) const;

  /// log p(target | source) of each pair: natural logarithm, without label smoothing, summed over
  /// the target's tokens, EOS counted.
  /// @throws InternalError  a side is empty or longer than max_length().
  std::vector<double> score(const Pass& pass, std::span<const IdPair> pairs) const;

  /// Tokens of the longest side, EOS counted.
  std::int64_t max_length() const { return model_.config().max_positions; }

 private:
  std::int64_t batch_size(std::int64_t longest) const;
  std::vector<double> score_batch(const Pass& pass, const TokenBatch& batch) const;

  const Transformer& model_;
  std::int32_t bos_;
  std::int64_t batch_tokens_;
};

}  // namespace octavo
