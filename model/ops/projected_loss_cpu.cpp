#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/ops/projected_loss_cpu.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include <algorithm>
#include <cmath>
#include <limits>

#include "model/ops/loss_rows.h"
#include "model/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {
namespace {

template <class D, typename C>
HWY_INLINE C largest_of(D d, const C* row, std::int64_t V) {
  const std::int64_t L = lanes(d);
  const auto lowest = broadcast(d, -std::numeric_limits<double>::infinity());
  auto m0 = lowest, m1 = lowest;
  std::int64_t v = 0;
  for (; v + 2 * L <= V; v += 2 * L) {
    m0 = hn::Max(m0, hn::LoadU(d, row + v));
    m1 = hn::Max(m1, hn::LoadU(d, row + v + L));
  }
  C largest = max_of_lanes(d, hn::Max(m0, m1));
  for (; v < V; ++v) largest = std::max(largest, row[v]);
  return largest;
}

template <typename C>
struct RowSums {
  C exponentials;  ///< of exp(logit - largest)
  C distances;     ///< of logit - largest
};

/// Sums over the row; logits become exp(logit - largest) if kStore.
template <bool kStore, class D, typename C>
HWY_INLINE RowSums<C> sum_row(D d, C* row, std::int64_t V, C largest) {
  const std::int64_t L = lanes(d);
  const auto shift = hn::Set(d, largest);
  auto e0 = hn::Zero(d), e1 = e0, x0 = e0, x1 = e0;
  const auto add = [&](std::int64_t v, auto part, auto& exponentials, auto& distances) HWY_ATTR {
    const auto x = hn::Sub(load(d, row + v, part), shift);
    const auto e = exp(d, x);
    if constexpr (kStore) store(d, e, row + v, part);
    exponentials = hn::Add(exponentials, only(d, e, part));
    distances = hn::Add(distances, only(d, x, part));
  };
  std::int64_t v = 0;
  for (; v + 2 * L <= V; v += 2 * L) {
    add(v, Whole{}, e0, x0);
    add(v + L, Whole{}, e1, x1);
  }
  for_vectors(d, V - v, [&](std::int64_t i, auto part) HWY_ATTR { add(v + i, part, e0, x0); });
  return {sum_of_lanes(d, hn::Add(e0, e1)), sum_of_lanes(d, hn::Add(x0, x1))};
}

/// gradient[v] = factor * exponential[v] + shift for v < V, zero from there to Vp. The gradient may
/// lie in the memory of the exponentials: its elements are not wider.
template <class D, typename T, typename C>
HWY_INLINE void write_gradient(D d, const C* exponentials, std::int64_t V, std::int64_t Vp,
                               double factor, double shift, T* gradient) {
  const auto f = broadcast(d, factor), s = broadcast(d, shift);
  for_vectors(d, V, [&](std::int64_t v, auto part) HWY_ATTR {
    store(d, hn::MulAdd(f, load(d, exponentials + v, part), s), gradient + v, part);
  });
  for (std::int64_t v = V; v < Vp; ++v) gradient[v] = T(0.0f);
}

/// One row with a label: writes its two losses and, unless null, its gradient. Returns log
/// p(label).
template <typename T, typename C>
HWY_INLINE double loss_row(const LossRows& rows, std::int32_t label, C* row, double* losses,
                           T* gradient) {
  const VectorTag<T> d;
  const std::int64_t V = rows.vocabulary;
  const double pieces = static_cast<double>(V), smoothing = rows.label_smoothing;
  const C largest = largest_of(d, row, V), distance = row[label] - largest;
  const RowSums<C> sums =
      gradient != nullptr ? sum_row<true>(d, row, V, largest) : sum_row<false>(d, row, V, largest);
  const double sum = static_cast<double>(sums.exponentials), log_sum = std::log(sum);
  const double log_p = distance - log_sum;
  const double mean_log_p = static_cast<double>(sums.distances) / pieces - log_sum;
  losses[0] = -(1 - smoothing) * log_p - smoothing * mean_log_p;
  losses[1] = -log_p;
  if (gradient != nullptr) {
    const double scale = rows.gradient_scale, p = static_cast<double>(row[label]) / sum;
    write_gradient(d, row, V, rows.logits.dim(1), scale / sum, -scale * smoothing / pieces,
                   gradient);
    gradient[label] = T(static_cast<C>(scale * (p - smoothing / pieces - (1 - smoothing))));
  }
  return log_p;
}

template <typename T>
void loss_row_range(const LossRows& rows, std::int64_t begin, std::int64_t end) {
  using C = ComputeType<T>;
  const std::int64_t Vp = rows.logits.dim(1);
  for (std::int64_t r = begin; r < end; ++r) {
    const std::int32_t label = rows.labels.data<std::int32_t>()[r];
    double* losses = rows.losses.data<double>() + 2 * r;
    T* gradient = nullptr;
    if (rows.dlogits.present()) gradient = rows.dlogits.data<T>() + r * rows.dlogits.row_stride();
    double log_p = 0;
    if (label >= 0) {
      log_p = loss_row(rows, label, rows.logits.data<C>() + r * rows.logits.row_stride(), losses,
                       gradient);
    } else {
      losses[0] = losses[1] = 0;
      if (gradient != nullptr) std::fill(gradient, gradient + Vp, T(0.0f));
    }
    if (rows.log_likelihood.present()) rows.log_likelihood.data<C>()[r] = static_cast<C>(log_p);
  }
}

auto rows_kernel() {
  return PerType{loss_row_range<float>, loss_row_range<double>, loss_row_range<bfloat16>};
}

}  // namespace
}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/dispatch.h"
#include "core/parallel.h"

namespace octavo {
namespace {

HWY_EXPORT(rows_kernel);

}  // namespace

template <typename T>
void loss_rows(OnCpu, Context& ctx, const LossRows& rows) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(rows_kernel)().template get<T>();
  const std::int64_t R = rows.logits.dim(0);
  parallel_for(ctx, R, grain_of(rows.vocabulary),
               [&](std::int64_t begin, std::int64_t end) { kernel(rows, begin, end); });
  double* sums = rows.sums.data<double>();
  for (std::int64_t r = 0; r < R; ++r) {  // in the order of rows, whoever computed them
    sums[0] += rows.losses.data<double>()[2 * r];
    sums[1] += rows.losses.data<double>()[2 * r + 1];
  }
}

template void loss_rows<float>(OnCpu, Context&, const LossRows&);
template void loss_rows<double>(OnCpu, Context&, const LossRows&);
template void loss_rows<bfloat16>(OnCpu, Context&, const LossRows&);

}  // namespace octavo
#endif  // HWY_ONCE
