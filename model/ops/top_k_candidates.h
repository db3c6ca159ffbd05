#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/token_batch.h"

namespace octavo {

/// A piece that may belong to the k best.
template <typename C>
struct Candidate {
  C logit;
  std::int32_t id;

  /// The larger logit first, then the lower id.
  bool operator<(const Candidate& other) const {
    return logit != other.logit ? logit > other.logit : id < other.id;
  }
};

/// Neighbouring pieces whose largest logit is looked at first: enough groups pass unread.
inline constexpr std::int64_t kPieceGroup = 64;

constexpr std::int64_t piece_groups(std::int64_t vocabulary) {
  return (vocabulary + kPieceGroup - 1) / kPieceGroup;
}

/// One thread's scratch for one row.
template <typename C>
struct TopKBuffers {
  Candidate<C>* candidates;  ///< [capacity]
  C* maxima;                 ///< [groups]: largest logit of each group
  C* ordered;                ///< [groups]: the same, rearranged
  std::int64_t capacity, groups, bytes = 0;

  /// Lays the buffers out from `memory` on; with null, only to learn `bytes`.
  TopKBuffers(std::int64_t k, std::int64_t vocabulary, std::byte* memory)
      : capacity(2 * k + 256), groups(piece_groups(vocabulary)) {
    const auto take = [&]<typename T>(T*& to, std::int64_t n) {
      to = memory == nullptr ? nullptr : reinterpret_cast<T*>(memory + bytes);
      bytes += round_up(n * static_cast<std::int64_t>(sizeof(T)), 64);
    };
    take(candidates, capacity);
    take(maxima, groups);
    take(ordered, groups);
  }
};

/// The k best of the pieces offered so far, and some that were among them once. Pieces come in
/// ascending order of id.
template <typename C>
class CandidateList {
 public:
  CandidateList(const TopKBuffers<C>& buffers, std::int64_t k, std::span<const std::int32_t> banned)
      : list_(buffers.candidates), capacity_(buffers.capacity), k_(k), banned_(banned) {}

  void offer(C logit, std::int64_t id) {
    const auto piece = static_cast<std::int32_t>(id);
    if (std::isnan(logit)) return;  // has no place in an order; the sum over the row will tell
    if (full_ && !(logit > threshold_)) return;  // of two alike the lower id wins, and came first
    if (std::find(banned_.begin(), banned_.end(), piece) != banned_.end()) return;
    list_[size_++] = {.logit = logit, .id = piece};
    if (size_ == capacity_) keep_best();
  }

  /// The k best in order; at least k must have been offered.
  std::span<const Candidate<C>> sorted() {
    std::partial_sort(list_, list_ + k_, list_ + size_);
    return {list_, static_cast<std::size_t>(k_)};
  }

 private:
  void keep_best() {
    std::nth_element(list_, list_ + k_ - 1, list_ + size_);
    threshold_ = list_[k_ - 1].logit;
    size_ = k_;
    full_ = true;
  }

  Candidate<C>* list_;
  std::int64_t capacity_, k_, size_ = 0;
  std::span<const std::int32_t> banned_;
  C threshold_ = 0;
  bool full_ = false;
};

}  // namespace octavo
