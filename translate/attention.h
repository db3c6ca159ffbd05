#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "data/subwords.h"
#include "model/layers/pass.h"
#include "model/transformer.h"
#include "translate/scorer.h"
#include "translate/work_memory.h"

namespace octavo {

/// How the decoder looks at the source while it is given a translation.
struct PairAttention {
  std::int64_t layers = 0, heads = 0, target_tokens = 0, source_tokens = 0;
  /// [layers, heads, target tokens, source tokens], EOS counted on both sides: weights of target
  /// token t while it is predicted. Each row adds up to one.
  std::vector<float> weights{};
};

/// Reads cross-attention, one pair at a time: for looking at it, and for word alignments.
class AttentionReader {
 public:
  AttentionReader(const Transformer& model, std::int32_t bos) : model_(model), bos_(bos) {}

  /// What the longest pair takes, by running it on a plan.
  WorkMemory plan(DType compute, int threads) const;
  /// @throws InternalError  a side is empty.
  PairAttention read(const Pass& pass, const IdPair& pair) const;

 private:
  void run(const Pass& pass, const TokenBatch& batch, const AttentionListener& listener) const;

  const Transformer& model_;
  std::int32_t bos_;
};

/// One line of JSON without its end. docs/formats/attention.md
std::string attention_json(const PairAttention& attention, const IdPair& pair,
                           const Vocabulary& source, const Vocabulary& target);

}  // namespace octavo
