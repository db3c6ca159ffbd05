#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "core/dtype.h"
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

/// Candidates kept for k results: the more, the more seldom they are sorted out.
constexpr std::int64_t candidate_capacity(std::int64_t k) {
  return 2 * k + 256;
}

/// Bytes of one thread's candidates, in whole cache lines.
constexpr std::int64_t candidate_bytes(std::int64_t k, DType statistics) {
  const std::size_t one =
      statistics == DType::f64 ? sizeof(Candidate<double>) : sizeof(Candidate<float>);
  return round_up(candidate_capacity(k) * static_cast<std::int64_t>(one), 64);
}

/// The k best of the pieces offered so far, and some that were among them once. Pieces come in
/// ascending order of id.
template <typename C>
class CandidateList {
 public:
  CandidateList(Candidate<C>* memory, std::int64_t k, std::span<const std::int32_t> banned)
      : list_(memory), k_(k), banned_(banned) {}

  /// Pieces at or below this logit can't be among the k best: of two alike the lower id wins.
  /// Meaningless before full().
  C threshold() const { return threshold_; }
  /// Whether k pieces are known, so that threshold() holds.
  bool full() const { return full_; }

  void offer(C logit, std::int64_t id) {
    const auto piece = static_cast<std::int32_t>(id);
    if (std::isnan(logit)) return;  // has no place in an order; the sum over the row will tell
    if (full_ && !(logit > threshold_)) return;
    if (std::find(banned_.begin(), banned_.end(), piece) != banned_.end()) return;
    list_[size_++] = {.logit = logit, .id = piece};
    if (size_ == candidate_capacity(k_)) keep_best();
  }

  /// The k best in order.
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
  std::int64_t k_, size_ = 0;
  std::span<const std::int32_t> banned_;
  C threshold_ = 0;
  bool full_ = false;
};

}  // namespace octavo
