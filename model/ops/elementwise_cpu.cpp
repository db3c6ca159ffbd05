#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/ops/elementwise_cpu.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "core/tensor.h"
#include "model/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {
namespace {

// Float to bfloat16 and back, and copies of either; doubles take the plain loop below.
template <typename From, typename To>
void convert_range(const Tensor& from, const Tensor& to, std::int64_t begin, std::int64_t end) {
  const hn::ScalableTag<float> d;
  const From* x = from.data<From>() + begin;
  To* y = to.data<To>() + begin;
  for_vectors(d, end - begin, [&](std::int64_t i, auto part) HWY_ATTR {
    store(d, load(d, x + i, part), y + i, part);
  });
}

void narrow_kernel(const Tensor& from, const Tensor& to, std::int64_t begin, std::int64_t end) {
  convert_range<float, bfloat16>(from, to, begin, end);
}
void widen_kernel(const Tensor& from, const Tensor& to, std::int64_t begin, std::int64_t end) {
  convert_range<bfloat16, float>(from, to, begin, end);
}

}  // namespace
}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cstring>

#include "core/dispatch.h"
#include "core/parallel.h"

namespace octavo {
namespace {

HWY_EXPORT(narrow_kernel);
HWY_EXPORT(widen_kernel);

constexpr std::int64_t kGrain = grain_of(1);

template <typename From, typename To>
void convert_plain(Context& ctx, const Tensor& from, const Tensor& to) {
  const From* x = from.data<From>();
  To* y = to.data<To>();
  parallel_for(ctx, from.elements(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      y[i] = static_cast<To>(static_cast<ComputeType<To>>(x[i]));
    }
  });
}

}  // namespace

void scatter_rows(OnCpu, Context& ctx, const Tensor& from, const Tensor& places, const Tensor& to) {
  const auto* place = places.data<std::int32_t>();
  parallel_for(ctx, from.dim(0), grain_of(from.dim(1)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const Tensor source = from.rows(row, 1);
      const Tensor target = to.rows(place[row], 1);
      std::memcpy(target.raw(), source.raw(), static_cast<std::size_t>(source.bytes()));
    }
  });
}

void zero(OnCpu, Context& ctx, const Tensor& t) {
  parallel_for(ctx, t.bytes(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    std::memset(static_cast<char*>(t.raw()) + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

template <typename T>
void convert(OnCpu, Context& ctx, const Tensor& from, const Tensor& to) {
  const auto in_parallel = [&](auto* kernel) {
    parallel_for(ctx, from.elements(), kGrain,
                 [&](std::int64_t begin, std::int64_t end) { kernel(from, to, begin, end); });
  };
  if (from.dtype() == DType::f32 && to.dtype() == DType::bf16) {
    return in_parallel(HWY_DYNAMIC_DISPATCH(narrow_kernel));
  }
  if (from.dtype() == DType::bf16 && to.dtype() == DType::f32) {
    return in_parallel(HWY_DYNAMIC_DISPATCH(widen_kernel));
  }
  dispatch(ctx, to.dtype(), [&]<typename To>(auto) { convert_plain<T, To>(ctx, from, to); });
}

template void convert<float>(OnCpu, Context&, const Tensor&, const Tensor&);
template void convert<double>(OnCpu, Context&, const Tensor&, const Tensor&);
template void convert<bfloat16>(OnCpu, Context&, const Tensor&, const Tensor&);

}  // namespace octavo
#endif  // HWY_ONCE
