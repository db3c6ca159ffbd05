#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/ops/top_k_cpu.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include <cmath>
#include <limits>

#include "model/ops/simd-inl.h"
#include "model/ops/top_k.h"
#include "model/ops/top_k_candidates.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {
namespace {

// Vectors looked at together: their largest tells whether any element is worth a look.
constexpr std::int64_t kGroup = 4;

/// Offers a row's pieces and returns the largest logit.
template <class D, typename T, typename C>
HWY_INLINE C collect(D d, const T* row, std::int64_t V, CandidateList<C>& candidates) {
  const std::int64_t L = lanes(d), group = kGroup * L;
  auto largest = broadcast(d, -std::numeric_limits<double>::infinity());
  std::int64_t v = 0;
  for (; v + group <= V; v += group) {
    const auto v0 = load(d, row + v), v1 = load(d, row + v + L);
    const auto v2 = load(d, row + v + 2 * L), v3 = load(d, row + v + 3 * L);
    const auto best = hn::Max(hn::Max(v0, v1), hn::Max(v2, v3));
    largest = hn::Max(largest, best);
    if (candidates.full() && hn::AllFalse(d, hn::Gt(best, hn::Set(d, candidates.threshold())))) {
      continue;
    }
    for (std::int64_t i = v; i < v + group; ++i) candidates.offer(static_cast<C>(row[i]), i);
  }
  C result = max_of_lanes(d, largest);
  for (; v < V; ++v) {
    result = std::max(result, static_cast<C>(row[v]));
    candidates.offer(static_cast<C>(row[v]), v);
  }
  return result;
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
  for (std::int64_t r = begin; r < end; ++r) {
    const T* row = in.logits.data<T>() + r * in.logits.row_stride();
    CandidateList<C> candidates(reinterpret_cast<Candidate<C>*>(memory.raw()), in.k, in.banned);
    const C largest = collect(d, row, in.vocabulary, candidates);
    const C log_sum = std::log(sum_of_exponentials(d, row, in.vocabulary, largest));
    if (!std::isfinite(log_sum)) throw InternalError("top_k: a logit is not a number, or infinite");
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
  for_parts(ctx, scratch, [&](std::int64_t part, std::int64_t parts, const Tensor& memory) {
    rows(in, R * part / parts, R * (part + 1) / parts, log_probabilities, ids, memory);
  });
}

template void top_k<float>(OnCpu, Context&, const TopKArgs&, const Tensor&, const Tensor&,
                           const Tensor&);
template void top_k<double>(OnCpu, Context&, const TopKArgs&, const Tensor&, const Tensor&,
                            const Tensor&);
template void top_k<bfloat16>(OnCpu, Context&, const TopKArgs&, const Tensor&, const Tensor&,
                              const Tensor&);

}  // namespace octavo
#endif  // HWY_ONCE
