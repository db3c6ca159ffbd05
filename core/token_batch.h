#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace octavo {

/// Rows of every product are rounded up to this, so that libraries see few shapes.
inline constexpr std::int64_t kRowMultiple = 64;

constexpr std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

/// One side of a batch, as ops see it: sentences laid end to end, no padding between them.
///
/// Rows [tokens, rows) are the tail: id 0, position 0, ordinal 0, label -1. They stay finite,
/// carry zero gradient and enter no sum.
struct PackedTokens {
  std::int64_t tokens = 0;       ///< T, real tokens
  std::int64_t rows = 0;         ///< T rounded up to kRowMultiple
  std::int64_t sentences = 0;    ///< B
  std::int64_t longest = 0;      ///< tokens of the longest sentence
  std::int64_t sum_squares = 0;  ///< sum over sentences of length^2
  Tensor ids;                    ///< i32 [rows]
  Tensor positions;              ///< i32 [rows], 0 at the start of each sentence
  Tensor ordinals;               ///< i64 [rows], the token's number in the update
  Tensor offsets;                ///< i32 [B + 1], sentence b owns rows offsets[b] to offsets[b + 1]
};

/// A micro-batch of sentence pairs. Target ids start with BOS; labels are the same shifted by one
/// and end with EOS; so a target sentence has as many rows as labels.
struct TokenBatch {
  PackedTokens source;
  PackedTokens target;
  Tensor labels;                  ///< i32 [target.rows], -1 in the tail
  std::int64_t sum_products = 0;  ///< sum over sentences of source length * target length
};

/// The memory of one PackedTokens on the host, filled sentence by sentence.
class PackedTokensBuilder {
 public:
  void clear();
  /// Appends one sentence. `first_ordinal` numbers its first token in the update.
  void add(std::span<const std::int32_t> ids, std::int64_t first_ordinal);
  /// Rounds up the tail and returns views that stay valid until the next clear() or add().
  PackedTokens finish();
  std::size_t tokens() const { return static_cast<std::size_t>(offsets_.back()); }

 private:
  std::vector<std::int32_t> ids_, positions_;
  std::vector<std::int32_t> offsets_{0};
  std::vector<std::int64_t> ordinals_;
  std::int64_t longest_ = 0, sum_squares_ = 0;
};

/// A micro-batch that owns its host memory. Move it, don't copy it: views point inside.
class HostBatch {
 public:
  HostBatch() = default;
  HostBatch(HostBatch&&) = default;
  HostBatch& operator=(HostBatch&&) = default;

  void clear();
  /// Appends a pair. source: ids ending with EOS. target: ids ending with EOS, without BOS; the
  /// decoder's input (BOS, then all but the last) and the labels are made from it.
  void add(std::span<const std::int32_t> source, std::span<const std::int32_t> target,
           std::int32_t bos, std::int64_t first_source_ordinal, std::int64_t first_target_ordinal);
  /// Views for ops; valid until the next clear() or add().
  const TokenBatch& finish();
  const TokenBatch& batch() const { return batch_; }

 private:
  PackedTokensBuilder source_, target_;
  std::vector<std::int32_t> labels_, shifted_;
  std::int64_t sum_products_ = 0;
  TokenBatch batch_;
};

/// The shape of a batch without its contents, for plans: `sentences` of the given lengths each.
TokenBatch planned_batch(std::int64_t sentences, std::int64_t source_length,
                         std::int64_t target_length);

/// The same for the largest batch under limits: so many sentences and tokens of either side, none
/// longer than the longest.
struct BatchBounds {
  std::int64_t sentences;
  std::int64_t source_tokens, target_tokens;
  std::int64_t source_longest, target_longest;
};
TokenBatch planned_batch(const BatchBounds& bounds);

}  // namespace octavo
