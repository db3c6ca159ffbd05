#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/token_batch.h"
#include "model/cache_slots.h"
#include "model/layers/pass.h"
#include "model/transformer.h"

// R = hypotheses alive, B = sentences, M = source rows, P = heads * head width, D = model width.
namespace octavo {

/// Rows of decoding products are rounded up to this: few shapes, little waste.
inline constexpr std::int64_t kDecodeRowMultiple = 8;

/// The decoder, one token at a time, for many hypotheses of many sentences at once.
///
/// What each hypothesis has seen is kept inside (keys and values, written once and never moved:
/// CacheSlots says which belong to whom), so that a search only says which hypothesis continues
/// which. Rows are grouped by sentence; sentences that are done simply have no rows.
class IncrementalDecoder {
 public:
  /// @param pass  where everything lives: pass.memory must outlive the decoder and its
  ///              random.training must be false.
  /// @param source, memory_MD  the encoder's input and output, kept by reference.
  /// @param max_rows  hypotheses alive at once, over all sentences.
  /// @param max_steps tokens of the longest output.
  /// Begins with one row per sentence.
  IncrementalDecoder(const Transformer& model, const Pass& pass, const PackedTokens& source,
                     Tensor memory_MD, std::int64_t max_rows, std::int64_t max_steps);

  /// Feeds the newest token of every row.
  /// @param ids  [R]; the first step feeds BOS.
  /// @return the decoder's output [R, D], to be projected, valid until the next call; rows that
  ///         mean nothing follow, up to a multiple of kDecodeRowMultiple.
  /// @throws InternalError  more than max_steps.
  Tensor step(std::span<const std::int32_t> ids);

  /// Chooses who lives on: new row r continues old row parents[r].
  /// @param parents  [R new], grouped by sentence, in any order inside a sentence.
  /// @param rows     [B]: how many rows each sentence has now; their sum is R new <= max_rows.
  void select(std::span<const std::int32_t> parents, std::span<const std::int32_t> rows);

  std::int64_t rows() const { return rows_.tokens; }
  std::int64_t steps() const { return slots_.steps(); }

 private:
  struct BlockState {
    /// self: [slots, 2P] k, v of tokens fed; cross: [M, 2P] k, v.
    Tensor projected;
  };

  std::int64_t pitch_of_past() const;
  void set_rows(std::span<const std::int32_t> rows_per_sentence);
  void point_at_sources();
  /// The block's branch, before residual and norm.
  void run_block(std::size_t i, const Tensor& input, const Tensor& branch);
  void self_attention(const MultiHeadAttention& layer, const BlockState& state, const Tensor& input,
                      Tensor y);
  void cross_attention(const MultiHeadAttention& layer, const BlockState& state,
                       const Tensor& input, Tensor y);

  const Transformer& model_;
  Pass pass_;
  const PackedTokens& source_;
  std::int64_t max_rows_;
  CacheSlots slots_;
  std::vector<BlockState> states_;
  Tensor output_;

  PackedTokens rows_;  ///< the newest token of each hypothesis: ids and positions alone
  std::vector<std::int32_t> ids_, positions_, offsets_;
  std::vector<std::int32_t> source_slots_;    ///< [max_rows, longest source]
  std::vector<std::int32_t> source_lengths_;  ///< [max_rows]
};

}  // namespace octavo
