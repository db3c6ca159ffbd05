#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/ops/activation_cpu.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "model/ops/activation.h"
#include "model/ops/dropout-inl.h"
#include "model/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {
namespace {

constexpr double kSqrt2OverPi = 0.7978845608028654;  // of the tanh form of gelu
constexpr double kCubic = 0.044715;

// NaN compares false, so it passes: a diverged run must not look sound.
template <class D>
HWY_INLINE hn::Vec<D> relu(D d, hn::Vec<D> x) {
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
}

// (1 + tanh(u)) / 2 = sigmoid(2 u) with u = sqrt(2/pi) (x + kCubic x^3).
template <class D>
HWY_INLINE hn::Vec<D> gelu_gate(D d, hn::Vec<D> x, hn::Vec<D> squared) {
  const auto inner =
      hn::MulAdd(broadcast(d, 2 * kSqrt2OverPi * kCubic), squared, broadcast(d, 2 * kSqrt2OverPi));
  return sigmoid(d, hn::Mul(x, inner));
}

template <class D>
HWY_INLINE hn::Vec<D> gelu(D d, hn::Vec<D> x) {
  return hn::Mul(x, gelu_gate(d, x, hn::Mul(x, x)));
}

// With s the gate: s + x s (1 - s) 2 sqrt(2/pi) (1 + 3 kCubic x^2).
template <class D>
HWY_INLINE hn::Vec<D> gelu_slope(D d, hn::Vec<D> x) {
  const auto squared = hn::Mul(x, x);
  const auto s = gelu_gate(d, x, squared);
  const auto inner =
      hn::MulAdd(broadcast(d, 6 * kSqrt2OverPi * kCubic), squared, broadcast(d, 2 * kSqrt2OverPi));
  const auto bell = hn::Mul(s, hn::Sub(broadcast(d, 1), s));
  return hn::MulAdd(hn::Mul(x, inner), bell, s);
}

template <typename T>
void forward_rows(const ActivationArgs& in, const Tensor& y, std::int64_t begin, std::int64_t end) {
  const VectorTag<T> d;
  const std::int64_t F = y.dim(1);
  const T* x = in.x.data<T>() + begin * F;
  T* to = y.data<T>() + begin * F;
  const auto rows = [&](auto function) HWY_ATTR {
    if (!in.dropout.on()) {
      for_vectors(d, (end - begin) * F, [&](std::int64_t i, auto part) HWY_ATTR {
        store(d, function(load(d, x + i, part)), to + i, part);
      });
      return;
    }
    DropoutRow mask(d, in.dropout, F);
    for (std::int64_t n = begin; n < end; ++n, x += F, to += F) {
      mask.start(in.dropout.ordinals.data<std::int64_t>()[n]);
      for_vectors(d, F, [&](std::int64_t i, auto part) HWY_ATTR {
        store(d, mask.apply(d, function(load(d, x + i, part)), i), to + i, part);
      });
    }
  };
  if (in.kind == Activation::relu) {
    rows([&](auto v) HWY_ATTR { return relu(d, v); });
  } else {
    rows([&](auto v) HWY_ATTR { return gelu(d, v); });
  }
}

// y tells both masks: what relu cut and what dropout dropped is zero there.
template <typename T>
void relu_backward(const ActivationArgs& in, const Tensor& y, const Tensor& dy, const Tensor& dx,
                   std::int64_t begin, std::int64_t end) {
  const VectorTag<T> d;
  const std::int64_t F = dy.dim(1), first = begin * F;
  const T *out = y.data<T>() + first, *up = dy.data<T>() + first;
  T* to = dx.data<T>() + first;
  const auto scale = broadcast(d, in.dropout.on() ? in.dropout.scale() : 1.0);
  for_vectors(d, (end - begin) * F, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto cut = hn::Eq(load(d, out + i, part), hn::Zero(d));
    const auto slope = hn::Mul(load(d, up + i, part), scale);
    store(d, hn::IfThenElse(cut, hn::Zero(d), slope), to + i, part);
  });
}

template <typename T>
void gelu_backward(const ActivationArgs& in, const Tensor& dy, const Tensor& dx, std::int64_t begin,
                   std::int64_t end) {
  const VectorTag<T> d;
  const std::int64_t F = dy.dim(1);
  const T *x = in.x.data<T>() + begin * F, *up = dy.data<T>() + begin * F;
  T* to = dx.data<T>() + begin * F;
  const auto slope = [&](std::int64_t i, auto part) HWY_ATTR {
    return hn::Mul(load(d, up + i, part), gelu_slope(d, load(d, x + i, part)));
  };
  if (!in.dropout.on()) {
    for_vectors(d, (end - begin) * F, [&](std::int64_t i, auto part) HWY_ATTR {
      store(d, slope(i, part), to + i, part);
    });
    return;
  }
  DropoutRow mask(d, in.dropout, F);
  for (std::int64_t n = begin; n < end; ++n, x += F, up += F, to += F) {
    mask.start(in.dropout.ordinals.data<std::int64_t>()[n]);
    for_vectors(d, F, [&](std::int64_t i, auto part) HWY_ATTR {
      store(d, mask.apply(d, slope(i, part), i), to + i, part);
    });
  }
}

template <typename T>
void backward_rows(const ActivationArgs& in, const Tensor& y, const Tensor& dy, const Tensor& dx,
                   std::int64_t begin, std::int64_t end) {
  if (in.kind == Activation::relu) {
    relu_backward<T>(in, y, dy, dx, begin, end);
  } else {
    gelu_backward<T>(in, dy, dx, begin, end);
  }
}

auto forward_kernel() {
  return PerType{forward_rows<float>, forward_rows<double>, forward_rows<bfloat16>};
}
auto backward_kernel() {
  return PerType{backward_rows<float>, backward_rows<double>, backward_rows<bfloat16>};
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
void activation_forward(OnCpu, Context& ctx, const ActivationArgs& in, const Tensor& y) {
  const auto rows = HWY_DYNAMIC_DISPATCH(forward_kernel)().template get<T>();
  parallel_for(ctx, y.dim(0), grain_of(y.dim(1)),
               [&](std::int64_t begin, std::int64_t end) { rows(in, y, begin, end); });
}

template <typename T>
void activation_backward(OnCpu, Context& ctx, const ActivationArgs& in, const Tensor& y,
                         const Tensor& dy, const Tensor& dx) {
  const auto rows = HWY_DYNAMIC_DISPATCH(backward_kernel)().template get<T>();
  parallel_for(ctx, dy.dim(0), grain_of(dy.dim(1)),
               [&](std::int64_t begin, std::int64_t end) { rows(in, y, dy, dx, begin, end); });
}

template void activation_forward<float>(OnCpu, Context&, const ActivationArgs&, const Tensor&);
template void activation_forward<double>(OnCpu, Context&, const ActivationArgs&, const Tensor&);
template void activation_forward<bfloat16>(OnCpu, Context&, const ActivationArgs&, const Tensor&);
template void activation_backward<float>(OnCpu, Context&, const ActivationArgs&, const Tensor&,
                                         const Tensor&, const Tensor&);
template void activation_backward<double>(OnCpu, Context&, const ActivationArgs&, const Tensor&,
                                          const Tensor&, const Tensor&);
template void activation_backward<bfloat16>(OnCpu, Context&, const ActivationArgs&, const Tensor&,
                                            const Tensor&, const Tensor&);

}  // namespace octavo
#endif  // HWY_ONCE
