// Vectors for kernels: one source for every instruction set and element type.
//
// A kernel file x_cpu.cpp looks like this (see residual_norm_cpu.cpp):
//
//     #undef HWY_TARGET_INCLUDE
//     #define HWY_TARGET_INCLUDE "model/ops/x_cpu.cpp"
//     #include "hwy/foreach_target.h"  // compiles this file once per instruction set
//     #include "model/ops/simd-inl.h"
//
//     HWY_BEFORE_NAMESPACE();
//     namespace octavo::HWY_NAMESPACE {
//     template <typename T>
//     void x_rows(const XArgs& in, const Tensor& y, std::int64_t begin, std::int64_t end) {
//       const VectorTag<T> d;
//       for_vectors(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
//         store(d, hn::Add(load(d, a + i, part), load(d, b + i, part)), y + i, part);
//       });
//     }
//     auto x_rows_kernel() { return PerType{x_rows<float>, x_rows<double>, x_rows<bfloat16>}; }
//     }
//     HWY_AFTER_NAMESPACE();
//
//     #if HWY_ONCE
//     namespace octavo {
//     HWY_EXPORT(x_rows_kernel);
//     template <typename T>
//     void x(OnCpu, Context& ctx, const XArgs& in, Tensor y) {
//       const auto rows = HWY_DYNAMIC_DISPATCH(x_rows_kernel)().template get<T>();
//       parallel_for(ctx, N, grain, [&](auto begin, auto end) { rows(in, y, begin, end); });
//     }
//     }
//     #endif
//
// Lambdas that hold vectors need HWY_ATTR, and must not be called from code outside
// HWY_NAMESPACE: parallel_for goes around kernels, never inside.

// The guard is per target: this header is compiled once for each instruction set.
#if defined(OCTAVO_MODEL_OPS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_MODEL_OPS_SIMD_INL_H_
#undef OCTAVO_MODEL_OPS_SIMD_INL_H_
#else
#define OCTAVO_MODEL_OPS_SIMD_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/dtype.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "model/ops/per_type.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Full vectors of the type that elements of type T are computed in.
template <typename T>
using VectorTag = hn::ScalableTag<ComputeType<T>>;

template <class D>
HWY_INLINE std::int64_t lanes(D d) {
  return static_cast<std::int64_t>(hn::Lanes(d));
}

/// A vector that lies wholly inside its row.
struct Whole {};
/// The last, partial vector of a row: 0 < count < lanes.
struct Part {
  std::int64_t count;
};

/// Calls f(i, Whole{}) for i = 0, L, 2L, ... and f(i, Part{rest}) for what remains of [0, n).
template <class D, typename F>
HWY_INLINE void for_vectors(D d, std::int64_t n, F f) {
  const std::int64_t L = lanes(d);
  std::int64_t i = 0;
  for (; i + L <= n; i += L) f(i, Whole{});
  if (i < n) f(i, Part{n - i});
}

/// lanes(d) elements from `p`, which need not be aligned.
template <class D, typename C = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load(D d, const C* p) {
  return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::Vec<D> load([[maybe_unused]] D d, const bfloat16* p) {
  const hn::Rebind<std::uint16_t, D> d16;
  const hn::Rebind<std::uint32_t, D> d32;
  const auto bits = hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(p));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
}

/// Stores lanes(d) elements at `p`, which need not be aligned.
template <class D, typename C = hn::TFromD<D>>
HWY_INLINE void store(D d, hn::Vec<D> v, C* p) {
  hn::StoreU(v, d, p);
}
/// Rounds to nearest, ties to even; a NaN stays a NaN: the same bits as bfloat16(float).
template <class D>
HWY_INLINE void store([[maybe_unused]] D d, hn::Vec<D> v, bfloat16* p) {
  const hn::Rebind<std::uint16_t, D> d16;
  const hn::Rebind<std::uint32_t, D> d32;
  const auto u = hn::BitCast(d32, v);
  const auto high = hn::ShiftRight<16>(u);
  const auto odd = hn::And(high, hn::Set(d32, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(u, hn::Add(odd, hn::Set(d32, 0x7fff))));
  const auto is_nan = hn::RebindMask(d32, hn::IsNaN(v));
  const auto bits = hn::IfThenElse(is_nan, hn::Or(high, hn::Set(d32, 0x40)), rounded);
  hn::StoreU(hn::TruncateTo(d16, bits), d16, reinterpret_cast<std::uint16_t*>(p));
}

/// The same for a whole or a partial vector: lanes beyond the row read as zero and are not stored;
/// memory beyond the row is not touched.
template <class D, typename T>
HWY_INLINE hn::Vec<D> load(D d, const T* p, Whole) {
  return load(d, p);
}
template <class D, typename T>
HWY_INLINE hn::Vec<D> load(D d, const T* p, Part part) {
  HWY_ALIGN T buffer[hn::MaxLanes(D())] = {};
  std::memcpy(buffer, p, static_cast<std::size_t>(part.count) * sizeof(T));
  return load(d, buffer);
}
template <class D, typename T>
HWY_INLINE void store(D d, hn::Vec<D> v, T* p, Whole) {
  store(d, v, p);
}
template <class D, typename T>
HWY_INLINE void store(D d, hn::Vec<D> v, T* p, Part part) {
  HWY_ALIGN T buffer[hn::MaxLanes(D())];
  store(d, v, buffer);
  std::memcpy(p, buffer, static_cast<std::size_t>(part.count) * sizeof(T));
}

/// v with zeros in the lanes beyond the row, for sums of something that is not zero at zero.
template <class D>
HWY_INLINE hn::Vec<D> only(D, hn::Vec<D> v, Whole) {
  return v;
}
template <class D>
HWY_INLINE hn::Vec<D> only(D d, hn::Vec<D> v, Part part) {
  return hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(part.count)), v);
}

/// Every lane set to `value`, rounded to the vector's type.
template <class D>
HWY_INLINE hn::Vec<D> broadcast(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}

/// Sum of all lanes, in an order fixed by the instruction set.
template <class D>
HWY_INLINE hn::TFromD<D> sum_of_lanes(D d, hn::Vec<D> v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}
template <class D>
HWY_INLINE hn::TFromD<D> max_of_lanes(D d, hn::Vec<D> v) {
  return hn::GetLane(hn::MaxOfLanes(d, v));
}

/// Sum over the row [0, n) of what f(i, Whole{} or Part) returns, in an order fixed by the
/// instruction set and n. f must return zeros in the lanes beyond the row: see only().
template <class D, typename F>
HWY_INLINE hn::TFromD<D> sum_over(D d, std::int64_t n, F f) {
  const std::int64_t L = lanes(d);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;  // four chains hide the adders' latency
  std::int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    s0 = hn::Add(s0, f(i, Whole{}));
    s1 = hn::Add(s1, f(i + L, Whole{}));
    s2 = hn::Add(s2, f(i + 2 * L, Whole{}));
    s3 = hn::Add(s3, f(i + 3 * L, Whole{}));
  }
  for (; i + L <= n; i += L) s0 = hn::Add(s0, f(i, Whole{}));
  if (i < n) s1 = hn::Add(s1, f(i, Part{n - i}));
  return sum_of_lanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
}

/// exp(v), within a few units in the last place (float: one); arguments above 88 (float) or 708
/// (double) count as that, far below zero (float: below -87.3) gives 0, a NaN stays a NaN.
///
/// In float: exp(v) = 2^n exp(r), |r| <= log(2) / 2, with a polynomial of degree 6 for exp(r), off
/// by 4e-9 at most. Adding `round` leaves n + 127 in the low bits of a float, where a shift makes
/// them the exponent of 2^n. Half the work of hn::Exp, which reaches into the subnormal numbers.
template <class D>
HWY_INLINE hn::Vec<D> exp(D d, hn::Vec<D> v) {
  const auto limit = broadcast(d, sizeof(hn::TFromD<D>) == 4 ? 88.0 : 708.0);
  const auto x = hn::IfThenElse(hn::Gt(v, limit), limit, v);
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return hn::IfThenElse(hn::IsNaN(v), v, hn::Exp(d, x));
  } else {
    const hn::RebindToSigned<D> di;
    const auto round = hn::Set(d, 12582912.0f + 127.0f);  // 1.5 * 2^23: units are the last bits
    const auto t = hn::MulAdd(x, hn::Set(d, 1.44269504f), round);
    const auto n = hn::Sub(t, round);
    // log(2) in two parts: n times the first is exact.
    const auto r = hn::NegMulAdd(n, hn::Set(d, 1.428606820e-6f),
                                 hn::NegMulAdd(n, hn::Set(d, 0.693145752f), x));
    const auto r2 = hn::Mul(r, r);
    const auto c23 = hn::MulAdd(r, hn::Set(d, 0.16666521132f), hn::Set(d, 0.49999994040f));
    const auto c45 = hn::MulAdd(r, hn::Set(d, 0.00836874545f), hn::Set(d, 0.04166838899f));
    const auto c = hn::MulAdd(r2, hn::MulAdd(r2, hn::Set(d, 0.00138145406f), c45), c23);
    const auto y = hn::Add(hn::MulAdd(r2, c, r), hn::Set(d, 1.0f));
    const auto power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, t)));
    return hn::IfThenZeroElse(hn::Lt(v, hn::Set(d, -87.3365f)), hn::Mul(y, power));
  }
}

/// 1 / (1 + exp(-v)).
template <class D>
HWY_INLINE hn::Vec<D> sigmoid(D d, hn::Vec<D> v) {
  const auto one = broadcast(d, 1);
  return hn::Div(one, hn::Add(one, exp(d, hn::Neg(v))));
}

}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
