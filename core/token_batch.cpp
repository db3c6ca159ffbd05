#include "core/token_batch.h"

#include <algorithm>

namespace octavo {

void PackedTokensBuilder::clear() {
  ids_.clear();
  positions_.clear();
  ordinals_.clear();
  offsets_.assign(1, 0);
  longest_ = sum_squares_ = 0;
}

void PackedTokensBuilder::add(std::span<const std::int32_t> ids, std::int64_t first_ordinal) {
  const auto length = static_cast<std::int64_t>(ids.size());
  const auto tokens = static_cast<std::size_t>(offsets_.back());
  ids_.resize(tokens);  // drops a tail that finish() may have added
  positions_.resize(tokens);
  ordinals_.resize(tokens);
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  for (std::int64_t i = 0; i < length; ++i) {
    positions_.push_back(static_cast<std::int32_t>(i));
    ordinals_.push_back(first_ordinal + i);
  }
  offsets_.push_back(offsets_.back() + static_cast<std::int32_t>(length));
  longest_ = std::max(longest_, length);
  sum_squares_ += length * length;
}

PackedTokens PackedTokensBuilder::finish() {
  const std::int64_t tokens = offsets_.back();
  const std::int64_t rows = round_up(tokens, kRowMultiple);
  const auto size = static_cast<std::size_t>(rows);
  ids_.resize(size, 0);
  positions_.resize(size, 0);
  ordinals_.resize(size, 0);
  const auto sentences = static_cast<std::int64_t>(offsets_.size()) - 1;
  return {.tokens = tokens,
          .rows = rows,
          .sentences = sentences,
          .longest = longest_,
          .sum_squares = sum_squares_,
          .ids = Tensor(ids_.data(), {rows}, DType::i32),
          .positions = Tensor(positions_.data(), {rows}, DType::i32),
          .ordinals = Tensor(ordinals_.data(), {rows}, DType::i64),
          .offsets = Tensor(offsets_.data(), {sentences + 1}, DType::i32)};
}

void HostBatch::clear() {
  source_.clear();
  target_.clear();
  labels_.clear();
  sum_products_ = 0;
  batch_ = {};
}

void HostBatch::add(std::span<const std::int32_t> source, std::span<const std::int32_t> target,
                    std::int32_t bos, std::int64_t first_source_ordinal,
                    std::int64_t first_target_ordinal) {
  expect(!source.empty() && !target.empty(), "HostBatch::add: a sentence has no EOS");
  labels_.resize(target_.tokens());  // drops a tail that finish() may have added
  source_.add(source, first_source_ordinal);
  shifted_.assign(1, bos);
  shifted_.insert(shifted_.end(), target.begin(), target.end() - 1);
  target_.add(shifted_, first_target_ordinal);
  labels_.insert(labels_.end(), target.begin(), target.end());
  sum_products_ += static_cast<std::int64_t>(source.size() * target.size());
}

const TokenBatch& HostBatch::finish() {
  batch_.source = source_.finish();
  batch_.target = target_.finish();
  labels_.resize(static_cast<std::size_t>(batch_.target.rows), -1);
  batch_.labels = Tensor(labels_.data(), {batch_.target.rows}, DType::i32);
  batch_.sum_products = sum_products_;
  return batch_;
}

namespace {

PackedTokens planned_side(std::int64_t sentences, std::int64_t tokens, std::int64_t longest) {
  const std::int64_t rows = round_up(tokens, kRowMultiple);
  return {.tokens = tokens,
          .rows = rows,
          .sentences = sentences,
          .longest = longest,
          .sum_squares = tokens * longest,
          .ids = Tensor(nullptr, {rows}, DType::i32),
          .positions = Tensor(nullptr, {rows}, DType::i32),
          .ordinals = Tensor(nullptr, {rows}, DType::i64),
          .offsets = Tensor(nullptr, {sentences + 1}, DType::i32)};
}

}  // namespace

TokenBatch planned_batch(std::int64_t sentences, std::int64_t source_length,
                         std::int64_t target_length) {
  return planned_batch({.sentences = sentences,
                        .source_tokens = sentences * source_length,
                        .target_tokens = sentences * target_length,
                        .source_longest = source_length,
                        .target_longest = target_length});
}

TokenBatch planned_batch(const BatchBounds& b) {
  TokenBatch batch{.source = planned_side(b.sentences, b.source_tokens, b.source_longest),
                   .target = planned_side(b.sentences, b.target_tokens, b.target_longest),
                   .labels = {},
                   .sum_products = std::min(b.source_tokens * b.target_longest,
                                            b.target_tokens * b.source_longest)};
  batch.labels = Tensor(nullptr, {batch.target.rows}, DType::i32);
  return batch;
}

}  // namespace octavo
