#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/ops/optimizer_cpu.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include <algorithm>
#include <cmath>

#include "model/ops/runs.h"
#include "model/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {
namespace {

// Sum of the squares of one whole block, in float64.
HWY_INLINE double squares_of_block(const float* x) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  return sum_over(d, kFlatBlock, [&](std::int64_t i, auto) HWY_ATTR {
    const auto v = hn::PromoteTo(d, hn::LoadU(half, x + i));
    return hn::Mul(v, v);
  });
}
HWY_INLINE double squares_of_block(const double* x) {
  const hn::ScalableTag<double> d;
  return sum_over(d, kFlatBlock, [&](std::int64_t i, auto) HWY_ATTR {
    const auto v = hn::LoadU(d, x + i);
    return hn::Mul(v, v);
  });
}

// A block that runs cover in part is copied with zeros in the gaps: its sum is then made in the
// same order whatever the runs' lengths, and zeros add nothing.
template <typename T>
void squares(const Tensor& gradient, std::span<const ParameterRun> runs, const Tensor& partials,
             std::int64_t begin, std::int64_t end) {
  const T* g = gradient.data<T>();
  for (std::int64_t b = begin; b < end; ++b) {
    const std::int64_t first = b * kFlatBlock;
    HWY_ALIGN T copy[kFlatBlock];
    const T* block = nullptr;
    for_runs(runs, first, first + kFlatBlock,
             [&](const ParameterRun&, std::int64_t from, std::int64_t to) {
               if (to - from == kFlatBlock) {
                 block = g + first;
                 return;
               }
               if (block == nullptr) std::fill(copy, copy + kFlatBlock, T{0});
               block = copy;
               std::copy(g + from, g + to, copy + (from - first));
             });
    partials.data<double>()[b] = block == nullptr ? 0 : squares_of_block(block);
  }
}

template <typename T>
void adam_range(const AdamArgs& in, const ParameterRun& run, std::int64_t from, std::int64_t to) {
  const hn::ScalableTag<T> d;
  const double scale = in.control.data<double>()[static_cast<int>(StepControl::scale)];
  const double rate = in.rate * run.rate_scale;
  const double correction1 = 1 - std::pow(in.beta1, static_cast<double>(in.count));
  const double correction2 = 1 - std::pow(in.beta2, static_cast<double>(in.count));
  const auto vscale = broadcast(d, scale);
  const auto beta1 = broadcast(d, in.beta1), rest1 = broadcast(d, 1 - in.beta1);
  const auto beta2 = broadcast(d, in.beta2), rest2 = broadcast(d, 1 - in.beta2);
  const auto step = broadcast(d, rate / correction1);
  const auto root = broadcast(d, 1 / std::sqrt(correction2));
  const auto epsilon = broadcast(d, in.epsilon);
  const auto decay = broadcast(d, rate * run.weight_decay);
  T *w = in.master.data<T>() + from, *m = in.first.data<T>() + from;
  T* v = in.second.data<T>() + from;
  const T* g = in.gradient.data<T>() + from;
  bfloat16* rounded = in.weights.present() ? in.weights.data<bfloat16>() + from : nullptr;
  for_vectors(d, to - from, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto gradient = hn::Mul(load(d, g + i, part), vscale);
    const auto first = hn::MulAdd(beta1, load(d, m + i, part), hn::Mul(rest1, gradient));
    const auto second =
        hn::MulAdd(beta2, load(d, v + i, part), hn::Mul(rest2, hn::Mul(gradient, gradient)));
    const auto denominator = hn::MulAdd(hn::Sqrt(second), root, epsilon);
    const auto old = load(d, w + i, part);
    const auto moved = hn::Sub(old, hn::Div(hn::Mul(step, first), denominator));
    const auto updated = hn::NegMulAdd(decay, old, moved);
    store(d, first, m + i, part);
    store(d, second, v + i, part);
    store(d, updated, w + i, part);
    if constexpr (sizeof(T) == sizeof(float)) {
      if (rounded != nullptr) store(d, updated, rounded + i, part);
    }
  });
}

template <typename T>
void average_range(const Tensor& master, double decay, const Tensor& average, std::int64_t begin,
                   std::int64_t end) {
  const hn::ScalableTag<T> d;
  const auto rest = broadcast(d, 1 - decay);
  const T* w = master.data<T>() + begin;
  T* a = average.data<T>() + begin;
  for_vectors(d, end - begin, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto old = load(d, a + i, part);
    store(d, hn::MulAdd(rest, hn::Sub(load(d, w + i, part), old), old), a + i, part);
  });
}

// The buffers have a statistics type: float or double.
auto squares_kernel() {
  return PerType<void(const Tensor&, std::span<const ParameterRun>, const Tensor&, std::int64_t,
                      std::int64_t)>{squares<float>, squares<double>, nullptr};
}
auto adam_kernel() {
  return PerType<void(const AdamArgs&, const ParameterRun&, std::int64_t, std::int64_t)>{
      adam_range<float>, adam_range<double>, nullptr};
}
auto average_kernel() {
  return PerType<void(const Tensor&, double, const Tensor&, std::int64_t, std::int64_t)>{
      average_range<float>, average_range<double>, nullptr};
}

}  // namespace
}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/dispatch.h"
#include "core/parallel.h"

namespace octavo {
namespace {

HWY_EXPORT(squares_kernel);
HWY_EXPORT(adam_kernel);
HWY_EXPORT(average_kernel);

constexpr std::int64_t kBlockGrain = grain_of(kFlatBlock);

}  // namespace

template <typename T>
void gradient_norm(OnCpu, Context& ctx, const Tensor& gradient, std::span<const ParameterRun> runs,
                   double clip, const Tensor& control, const Tensor& partials) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(squares_kernel)().template get<T>();
  parallel_for(ctx, partials.dim(0), kBlockGrain, [&](std::int64_t begin, std::int64_t end) {
    kernel(gradient, runs, partials, begin, end);
  });
  double sum = 0;
  for (std::int64_t b = 0; b < partials.dim(0); ++b) sum += partials.data<double>()[b];
  const double norm = std::sqrt(sum);
  double* out = control.data<double>();
  out[static_cast<int>(StepControl::norm)] = norm;
  out[static_cast<int>(StepControl::scale)] = clip > 0 && norm > clip ? clip / norm : 1;
  out[static_cast<int>(StepControl::finite)] = std::isfinite(norm) ? 1 : 0;
}

template <typename T>
void adam(OnCpu, Context& ctx, const AdamArgs& in) {
  if (in.control.data<double>()[static_cast<int>(StepControl::finite)] == 0) return;
  const auto kernel = HWY_DYNAMIC_DISPATCH(adam_kernel)().template get<T>();
  const std::int64_t P = in.master.dim(0);
  parallel_for(ctx, flat_blocks(P), kBlockGrain, [&](std::int64_t begin, std::int64_t end) {
    for_runs(in.runs, begin * kFlatBlock, std::min(P, end * kFlatBlock),
             [&](const ParameterRun& run, std::int64_t from, std::int64_t to) {
               kernel(in, run, from, to);
             });
  });
}

template <typename T>
void exponential_average(OnCpu, Context& ctx, const Tensor& master, double decay,
                         const Tensor& average) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(average_kernel)().template get<T>();
  parallel_for(ctx, master.dim(0), grain_of(1), [&](std::int64_t begin, std::int64_t end) {
    kernel(master, decay, average, begin, end);
  });
}

template void gradient_norm<float>(OnCpu, Context&, const Tensor&, std::span<const ParameterRun>,
                                   double, const Tensor&, const Tensor&);
template void gradient_norm<double>(OnCpu, Context&, const Tensor&, std::span<const ParameterRun>,
                                    double, const Tensor&, const Tensor&);
template void adam<float>(OnCpu, Context&, const AdamArgs&);
template void adam<double>(OnCpu, Context&, const AdamArgs&);
template void exponential_average<float>(OnCpu, Context&, const Tensor&, double, const Tensor&);
template void exponential_average<double>(OnCpu, Context&, const Tensor&, double, const Tensor&);
// dispatch() names them; the ops' checks refuse the type.
template void gradient_norm<bfloat16>(OnCpu, Context&, const Tensor&, std::span<const ParameterRun>,
                                      double, const Tensor&, const Tensor&);
template void adam<bfloat16>(OnCpu, Context&, const AdamArgs&);
template void exponential_average<bfloat16>(OnCpu, Context&, const Tensor&, double, const Tensor&);

}  // namespace octavo
#endif  // HWY_ONCE
