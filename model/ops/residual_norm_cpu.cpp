#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/ops/residual_norm_cpu.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include <cmath>

#include "model/ops/column_sums.h"
#include "model/ops/dropout-inl.h"
#include "model/ops/residual_norm.h"
#include "model/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {
namespace {

// sum = residual + dropout(branch), one row. Returns the sum of its elements as rounded to T.
template <typename T, class D, class Mask>
HWY_INLINE ComputeType<T> add_branch(D d, std::int64_t width, const T* residual, const T* branch,
                                     T* sum, Mask* mask) {
  const auto add = [&](auto dropped) HWY_ATTR {
    for_vectors(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto b = dropped(load(d, branch + i, part), i);
      store(d, hn::Add(load(d, residual + i, part), b), sum + i, part);
    });
  };
  if (mask == nullptr) {
    add([](auto v, std::int64_t) HWY_ATTR { return v; });
  } else {
    add([&](auto v, std::int64_t i) HWY_ATTR { return mask->apply(d, v, i); });
  }
  return sum_over(d, width,
                  [&](std::int64_t i, auto part) HWY_ATTR { return load(d, sum + i, part); });
}

template <typename T>
void forward_rows(const ResidualNormArgs& in, const Tensor& y, const ResidualNormSaved& saved,
                  std::int64_t begin, std::int64_t end) {
  using C = ComputeType<T>;
  const VectorTag<T> d;
  const std::int64_t D = y.dim(1);
  const bool has_branch = in.branch.present();
  const T* residual = in.residual.data<T>();
  const T* branch = has_branch ? in.branch.data<T>() : nullptr;
  T* sums = has_branch ? saved.sum.data<T>() : nullptr;
  const C *gamma = in.gamma.data<C>(), *beta = in.beta.data<C>();
  DropoutRow mask(d, in.dropout, D);
  for (std::int64_t n = begin; n < end; ++n) {
    const T* s = has_branch ? sums + n * D : residual + n * D;
    C total = 0;
    if (has_branch) {
      if (in.dropout.on()) mask.start(in.dropout.ordinals.data<std::int64_t>()[n]);
      total = add_branch(d, D, residual + n * D, branch + n * D, sums + n * D,
                         in.dropout.on() ? &mask : nullptr);
    } else {
      total =
          sum_over(d, D, [&](std::int64_t i, auto part) HWY_ATTR { return load(d, s + i, part); });
    }
    const C mean = total / static_cast<C>(D);
    const auto vmean = hn::Set(d, mean);
    const C squares = sum_over(d, D, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto centred = only(d, hn::Sub(load(d, s + i, part), vmean), part);
      return hn::Mul(centred, centred);
    });
    const C rstd = 1 / std::sqrt(squares / static_cast<C>(D) + static_cast<C>(in.epsilon));
    saved.mean.data<C>()[n] = mean;
    saved.rstd.data<C>()[n] = rstd;
    const auto vrstd = hn::Set(d, rstd);
    T* to = y.data<T>() + n * D;
    for_vectors(d, D, [&](std::int64_t i, auto part) HWY_ATTR {
      const auto normal = hn::Mul(hn::Sub(load(d, s + i, part), vmean), vrstd);
      store(d, hn::MulAdd(normal, load(d, gamma + i, part), load(d, beta + i, part)), to + i, part);
    });
  }
}

// With x = (s - mean) * rstd and g = dy * gamma, means taken over a row's columns:
//     ds = rstd * (g - mean(g) - x * mean(g * x)) + dsum_in
template <typename T>
void backward_row(const ResidualNormArgs& in, const ResidualNormSaved& saved, const Tensor& dy,
                  const ResidualNormGradients& out, std::int64_t n, ComputeType<T>* dgamma,
                  ComputeType<T>* dbeta, DropoutRow<VectorTag<T>>* mask) {
  using C = ComputeType<T>;
  const VectorTag<T> d;
  const std::int64_t D = dy.dim(1);
  const T *s = saved.sum.data<T>() + n * D, *up = dy.data<T>() + n * D;
  const C* gamma = in.gamma.data<C>();
  const C rstd = saved.rstd.data<C>()[n];
  const auto vmean = hn::Set(d, saved.mean.data<C>()[n]), vrstd = hn::Set(d, rstd);
  auto sum_g = hn::Zero(d), sum_gx = hn::Zero(d);
  for_vectors(d, D, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto v = load(d, up + i, part);  // zero beyond the row, so the sums need no mask
    const auto x = hn::Mul(hn::Sub(load(d, s + i, part), vmean), vrstd);
    const auto g = hn::Mul(v, load(d, gamma + i, part));
    sum_g = hn::Add(sum_g, g);
    sum_gx = hn::MulAdd(g, x, sum_gx);
    store(d, hn::MulAdd(v, x, load(d, dgamma + i, part)), dgamma + i, part);
    store(d, hn::Add(v, load(d, dbeta + i, part)), dbeta + i, part);
  });
  const auto mean_g = hn::Set(d, sum_of_lanes(d, sum_g) / static_cast<C>(D));
  const auto mean_gx = hn::Set(d, sum_of_lanes(d, sum_gx) / static_cast<C>(D));
  const T* other = out.dsum_in.present() ? out.dsum_in.data<T>() + n * D : nullptr;
  T* dresidual = out.dresidual.data<T>() + n * D;
  T* dbranch = out.dbranch.present() ? out.dbranch.data<T>() + n * D : nullptr;
  for_vectors(d, D, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto x = hn::Mul(hn::Sub(load(d, s + i, part), vmean), vrstd);
    const auto g = hn::Mul(load(d, up + i, part), load(d, gamma + i, part));
    auto ds = hn::Mul(vrstd, hn::Sub(hn::Sub(g, mean_g), hn::Mul(x, mean_gx)));
    if (other != nullptr) ds = hn::Add(ds, load(d, other + i, part));
    store(d, ds, dresidual + i, part);
    if (dbranch != nullptr) {
      store(d, mask != nullptr ? mask->apply(d, ds, i) : ds, dbranch + i, part);
    }
  });
}

template <typename T>
void backward_blocks(const ResidualNormArgs& in, const ResidualNormSaved& saved, const Tensor& dy,
                     const ResidualNormGradients& out, const Tensor& partials, std::int64_t begin,
                     std::int64_t end) {
  const VectorTag<T> d;
  const std::int64_t N = dy.dim(0), D = dy.dim(1);
  DropoutRow mask(d, in.dropout, D);
  const bool drop = in.dropout.on() && out.dbranch.present();
  for (std::int64_t b = begin; b < end; ++b) {
    ComputeType<T>* dgamma = partials.data<ComputeType<T>>() + b * 2 * D;
    std::fill(dgamma, dgamma + 2 * D, ComputeType<T>{0});
    for (std::int64_t n = b * kRowsPerSum; n < HWY_MIN(N, (b + 1) * kRowsPerSum); ++n) {
      if (drop) mask.start(in.dropout.ordinals.data<std::int64_t>()[n]);
      backward_row<T>(in, saved, dy, out, n, dgamma, dgamma + D, drop ? &mask : nullptr);
    }
  }
}

auto forward_kernel() {
  return PerType{forward_rows<float>, forward_rows<double>, forward_rows<bfloat16>};
}
auto backward_kernel() {
  return PerType{backward_blocks<float>, backward_blocks<double>, backward_blocks<bfloat16>};
}

}  // namespace
}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/dispatch.h"
#include "core/parallel.h"

namespace octavo {
namespace {

HWY_EXPORT(forward_kernel);
HWY_EXPORT(backward_kernel);

}  // namespace

template <typename T>
void residual_norm_forward(OnCpu, Context& ctx, const ResidualNormArgs& in, const Tensor& y,
                           const ResidualNormSaved& saved) {
  const auto rows = HWY_DYNAMIC_DISPATCH(forward_kernel)().template get<T>();
  parallel_for(ctx, y.dim(0), grain_of(4 * y.dim(1)),
               [&](std::int64_t begin, std::int64_t end) { rows(in, y, saved, begin, end); });
}

template <typename T>
void residual_norm_backward(OnCpu, Context& ctx, const ResidualNormArgs& in,
                            const ResidualNormSaved& saved, const Tensor& dy,
                            const ResidualNormGradients& out, const Tensor& partials) {
  const auto blocks = HWY_DYNAMIC_DISPATCH(backward_kernel)().template get<T>();
  parallel_for(ctx, partials.dim(0), grain_of(4 * kRowsPerSum * dy.dim(1)),
               [&](std::int64_t begin, std::int64_t end) {
                 blocks(in, saved, dy, out, partials, begin, end);
               });
}

template void residual_norm_forward<float>(OnCpu, Context&, const ResidualNormArgs&, const Tensor&,
                                           const ResidualNormSaved&);
template void residual_norm_forward<double>(OnCpu, Context&, const ResidualNormArgs&, const Tensor&,
                                            const ResidualNormSaved&);
template void residual_norm_forward<bfloat16>(OnCpu, Context&, const ResidualNormArgs&,
                                              const Tensor&, const ResidualNormSaved&);
template void residual_norm_backward<float>(OnCpu, Context&, const ResidualNormArgs&,
                                            const ResidualNormSaved&, const Tensor&,
                                            const ResidualNormGradients&, const Tensor&);
template void residual_norm_backward<double>(OnCpu, Context&, const ResidualNormArgs&,
                                             const ResidualNormSaved&, const Tensor&,
                                             const ResidualNormGradients&, const Tensor&);
template void residual_norm_backward<bfloat16>(OnCpu, Context&, const ResidualNormArgs&,
                                               const ResidualNormSaved&, const Tensor&,
                                               const ResidualNormGradients&, const Tensor&);

}  // namespace octavo
#endif  // HWY_ONCE
