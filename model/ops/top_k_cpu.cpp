#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/ops/top_k_cpu.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "model/ops/simd-inl.h"
#include "model/ops/top_k.h"
#include "model/ops/top_k_candidates.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {
namespace {

/// Writes the largest logit of every group and returns the largest of all.
template <class D, typename T, typename C>
HWY_INLINE C find_maxima(D d, const T* row, std::int64_t V, const TopKBuffers<C>& buffers) {
  C largest = -std::numeric_limits<C>::infinity();
  for (std::int64_t g = 0; g < buffers.groups; ++g) {
    const T* first = row + g * kPieceGroup;
    const std::int64_t n = std::min(kPieceGroup, V - g * kPieceGroup);
    C best = -std::numeric_limits<C>::infinity();
    if (n == kPieceGroup) {
      auto v = load(d, first);
      for (std::int64_t i = lanes(d); i < kPieceGroup; i += lanes(d)) {
        v = hn::Max(v, load(d, first + i));
      }
      best = max_of_lanes(d, v);
    } else {
      for (std::int64_t i = 0; i < n; ++i) best = std::max(best, static_cast<C>(first[i]));
    }
    if (std::isnan(best)) throw UserError(kOutputIsNoNumber);
    buffers.maxima[g] = best;
    largest = std::max(largest, best);
  }
  return largest;
}

/// A logit that `wanted` pieces reach, because as many groups do.
template <typename C>
C threshold_of(std::int64_t wanted, const TopKBuffers<C>& buffers) {
  if (wanted > buffers.groups) return -std::numeric_limits<C>::infinity();
  std::copy_n(buffers.maxima, buffers.groups, buffers.ordered);
  std::nth_element(buffers.ordered, buffers.ordered + wanted - 1, buffers.ordered + buffers.groups,
                   std::greater<C>());
  return buffers.ordered[wanted - 1];
}

/// Offers every piece at or above the threshold, and few others.
template <typename T, typename C>
void offer_pieces(const T* row, std::int64_t V, C threshold, const TopKBuffers<C>& buffers,
                  CandidateList<C>& candidates) {
  for (std::int64_t g = 0; g < buffers.groups; ++g) {
    if (buffers.maxima[g] < threshold) continue;
    const std::int64_t end = std::min(V, (g + 1) * kPieceGroup);
    for (std::int64_t v = g * kPieceGroup; v < end; ++v) {
      if (static_cast<C>(row[v]) >= threshold) candidates.offer(static_cast<C>(row[v]), v);
    }
  }
}

/// Sum over the row of exp(logit - largest).
template <class D, typename T, typename C>
HWY_INLINE C sum_of_exponentials(D d, const T* row, std::int64_t V, C largest) {
  const std::int64_t L = lanes(d);
  const auto shift = hn::Set(d, largest);
  auto s0 = hn::Zero(d), s1 = hn::Zero(d);
  std::int64_t v = 0;
  for (; v + 2 * L <= V; v += 2 * L) {
    s0 = hn::Add(s0, exp(d, hn::Sub(load(d, row + v), shift)));
    s1 = hn::Add(s1, exp(d, hn::Sub(load(d, row + v + L), shift)));
  }
  for_vectors(d, V - v, [&](std::int64_t i, auto part) HWY_ATTR {
    s0 = hn::Add(s0, only(d, exp(d, hn::Sub(load(d, row + v + i, part), shift)), part));
  });
  return sum_of_lanes(d, hn::Add(s0, s1));
}

template <typename T>
void top_k_rows(const TopKArgs& in, std::int64_t begin, std::int64_t end,
                const Tensor& log_probabilities, const Tensor& ids, const Tensor& memory) {
  using C = ComputeType<T>;
  const VectorTag<T> d;
  const TopKBuffers<C> buffers(in.k, in.vocabulary, static_cast<std::byte*>(memory.raw()));
  for (std::int64_t r = begin; r < end; ++r) {
    const T* row = in.logits.data<T>() + r * in.logits.row_stride();
    CandidateList<C> candidates(buffers, in.k, in.banned);
    const C largest = find_maxima(d, row, in.vocabulary, buffers);
    const C threshold = threshold_of(in.k + static_cast<std::int64_t>(in.banned.size()), buffers);
    offer_pieces(row, in.vocabulary, threshold, buffers, candidates);
    const C log_sum = std::log(sum_of_exponentials(d, row, in.vocabulary, largest));
    if (!std::isfinite(log_sum)) throw UserError(kOutputIsNoNumber);
    C* to = log_probabilities.data<C>() + r * in.k;
    std::int32_t* id = ids.data<std::int32_t>() + r * in.k;
    for (const Candidate<C>& c : candidates.sorted()) {
      *to++ = c.logit - largest - log_sum;
      *id++ = c.id;
    }
  }
}

auto rows_kernel() {
  return PerType{top_k_rows<float>, top_k_rows<double>, top_k_rows<bfloat16>};
}

}  // namespace
}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/dispatch.h"
#include "model/ops/parts.h"

namespace octavo {
namespace {

HWY_EXPORT(rows_kernel);

}  // namespace

template <typename T>
void top_k(OnCpu, Context& ctx, const TopKArgs& in, const Tensor& log_probabilities,
           const Tensor& ids, const Tensor& scratch) {
  const auto rows = HWY_DYNAMIC_DISPATCH(rows_kernel)().template get<T>();
  const std::int64_t R = in.logits.dim(0);
  const auto run = [&](std::int64_t part, std::int64_t parts, const Tensor& memory) {
    rows(in, R * part / parts, R * (part + 1) / parts, log_probabilities, ids, memory);
  };
  for_parts(ctx, scratch, R * in.vocabulary, run);
}

template void top_k<float>(OnCpu, Context&, const TopKArgs&, const Tensor&, const Tensor&,
                           const Tensor&);
template void top_k<double>(OnCpu, Context&, const TopKArgs&, const Tensor&, const Tensor&,
                            const Tensor&);
template void top_k<bfloat16>(OnCpu, Context&, const TopKArgs&, const Tensor&, const Tensor&,
                              const Tensor&);

}  // namespace octavo
#endif  // HWY_ONCE
