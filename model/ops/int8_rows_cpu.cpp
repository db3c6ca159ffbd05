#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/ops/int8_rows_cpu.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "model/ops/int8_rows.h"
#include "model/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {
namespace {

// The largest magnitude of a row; not finite if an element is not.
template <class D>
HWY_INLINE float largest_magnitude(D d, const float* x, std::int64_t n) {
  auto largest = hn::Zero(d);
  auto faults = hn::Zero(d);  // x - x: zero, but a NaN for what is not finite
  for_vectors(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto v = load(d, x + i, part);
    largest = hn::Max(largest, hn::Abs(v));
    faults = hn::Add(faults, hn::Sub(v, v));
  });
  return max_of_lanes(d, largest) + sum_of_lanes(d, faults);
}

void quantise(const Tensor& x, const Tensor& q, const Tensor& scales, std::int64_t begin,
              std::int64_t end) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<std::int16_t, decltype(d)> d16;
  const hn::Rebind<std::int8_t, decltype(d)> d8;
  const std::int64_t I = x.dim(1), L = lanes(d);
  for (std::int64_t n = begin; n < end; ++n) {
    const float* from = x.data<float>() + n * x.row_stride();
    auto* to = reinterpret_cast<std::int8_t*>(q.data<std::uint8_t>()) + n * I;
    const float largest = largest_magnitude(d, from, I);
    scales.data<float>()[n] = largest / 127;
    const auto factor = hn::Set(d, largest > 0 ? 127 / largest : 0.0f);
    const auto rounded = [&](auto v) HWY_ATTR {
      return hn::DemoteTo(d8, hn::DemoteTo(d16, hn::NearestInt(hn::Mul(v, factor))));
    };
    std::int64_t i = 0;
    for (; i + L <= I; i += L) hn::StoreU(rounded(load(d, from + i)), d8, to + i);
    if (i < I) {
      HWY_ALIGN std::int8_t rest[HWY_MAX_BYTES];
      hn::StoreU(rounded(load(d, from + i, Part{I - i})), d8, rest);
      for (std::int64_t j = 0; i + j < I; ++j) to[i + j] = rest[j];
    }
  }
}

template <bool kBias>
void rescale_rows(const Tensor& y, const Tensor& rows, const Tensor& columns, const Tensor& bias,
                  std::int64_t begin, std::int64_t end) {
  const hn::ScalableTag<float> d;
  const float* column = columns.data<float>();
  const float* offset = kBias ? bias.data<float>() : nullptr;
  for (std::int64_t n = begin; n < end; ++n) {
    float* to = y.data<float>() + n * y.row_stride();
    const auto row = hn::Set(d, rows.data<float>()[n]);
    for_vectors(d, y.dim(1), [&](std::int64_t o, auto part) HWY_ATTR {
      const auto factor = hn::Mul(row, load(d, column + o, part));
      const auto v = load(d, to + o, part);
      if constexpr (kBias) {
        store(d, hn::MulAdd(v, factor, load(d, offset + o, part)), to + o, part);
      } else {
        store(d, hn::Mul(v, factor), to + o, part);
      }
    });
  }
}

void rescale_any(const Tensor& y, const Tensor& rows, const Tensor& columns, const Tensor& bias,
                 std::int64_t begin, std::int64_t end) {
  if (bias.present()) {
    rescale_rows<true>(y, rows, columns, bias, begin, end);
  } else {
    rescale_rows<false>(y, rows, columns, bias, begin, end);
  }
}

}  // namespace
}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/parallel.h"

namespace octavo {
namespace {

HWY_EXPORT(quantise);
HWY_EXPORT(rescale_any);

}  // namespace

void quantise_rows(Context& ctx, const Tensor& x, Tensor q, Tensor scales) {
  const std::int64_t N = x.dim(0), I = x.dim(1);
  expect_dtype(x, DType::f32, "x");
  expect_shape(q, {N, I}, "q");
  expect_dtype(q, DType::u8, "q");
  expect_shape(scales, {N}, "scales");
  expect_dtype(scales, DType::f32, "scales");
  if (ctx.device() == Device::plan) return;
  parallel_for(ctx, N, grain_of(I), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(quantise)(x, q, scales, begin, end);
  });
}

void rescale(Context& ctx, Tensor y, const Tensor& rows, const Tensor& columns,
             const Tensor& bias) {
  const std::int64_t N = y.dim(0), O = y.dim(1);
  expect_dtype(y, DType::f32, "y");
  expect_shape(rows, {N}, "rows");
  expect_shape(columns, {O}, "columns");
  if (bias.present()) expect_shape(bias, {O}, "bias");
  if (ctx.device() == Device::plan) return;
  parallel_for(ctx, N, grain_of(O), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(rescale_any)(y, rows, columns, bias, begin, end);
  });
}

}  // namespace octavo
#endif  // HWY_ONCE
