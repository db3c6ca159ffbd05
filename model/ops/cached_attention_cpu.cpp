#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/ops/cached_attention_cpu.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include <algorithm>
#include <limits>

#include "model/ops/cached_attention.h"
#include "model/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {
namespace {

/// Where the keys or the values of one row's past lie, for one head.
template <typename T>
struct Past {
  const T* first;  ///< of slot 0
  std::int64_t stride;
  const std::int32_t* slots;
  std::int64_t steps;

  const T* at(std::int64_t step) const { return first + slots[step] * stride; }
};

/// q . key, in one vector.
template <class D, typename T>
HWY_INLINE hn::Vec<D> multiply_lanes(D d, const T* q, const T* key, std::int64_t width) {
  auto sum = hn::Zero(d);
  for_vectors(d, width, [&](std::int64_t i, auto part) HWY_ATTR {
    sum = hn::MulAdd(load(d, q + i, part), load(d, key + i, part), sum);
  });
  return sum;
}

/// Keys whose lanes are added up together.
constexpr std::int64_t kTogether = 4;

/// to[j] = factor * the sum of the lanes of v[j], for j < 4.
template <class D, typename C>
HWY_INLINE void sum_lanes_of_four(D d, const hn::Vec<D> (&v)[kTogether], C factor, C* to) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(C) == 4) {
    // Sums of pairs, interleaved: lane i of each block belongs to v[i] at the end.
    const auto s01 =
        hn::Add(hn::InterleaveLower(d, v[0], v[1]), hn::InterleaveUpper(d, v[0], v[1]));
    const auto s23 =
        hn::Add(hn::InterleaveLower(d, v[2], v[3]), hn::InterleaveUpper(d, v[2], v[3]));
    const hn::RepartitionToWide<D> wide;
    const auto a = hn::BitCast(wide, s01), b = hn::BitCast(wide, s23);
    const auto sums = hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, a, b)),
                              hn::BitCast(d, hn::InterleaveUpper(wide, a, b)));
    HWY_ALIGN C blocks[HWY_MAX_BYTES / sizeof(C)];
    hn::Store(sums, d, blocks);
    for (std::int64_t j = 0; j < kTogether; ++j) {
      C sum = blocks[j];
      for (std::int64_t block = kTogether; block < lanes(d); block += kTogether)
        sum += blocks[block + j];
      to[j] = factor * sum;
    }
    return;
  }
#endif
  for (std::int64_t j = 0; j < kTogether; ++j) to[j] = factor * sum_of_lanes(d, v[j]);
}

/// scores[s] = scale * q . key of step s. Returns the largest.
template <class D, typename T, typename C>
HWY_INLINE C score_steps(D d, const T* q, std::int64_t width, C scale, const Past<T>& keys,
                         C* scores) {
  std::int64_t s = 0;
  for (; s + kTogether <= keys.steps; s += kTogether) {
    const hn::Vec<D> sums[kTogether] = {
        multiply_lanes(d, q, keys.at(s), width), multiply_lanes(d, q, keys.at(s + 1), width),
        multiply_lanes(d, q, keys.at(s + 2), width), multiply_lanes(d, q, keys.at(s + 3), width)};
    sum_lanes_of_four(d, sums, scale, scores + s);
  }
  for (; s < keys.steps; ++s)
    scores[s] = scale * sum_of_lanes(d, multiply_lanes(d, q, keys.at(s), width));
  return *std::max_element(scores, scores + keys.steps);
}

/// Scores become exp(score - largest). Returns their sum.
template <class D, typename C>
HWY_INLINE C exponentiate(D d, C* scores, std::int64_t steps, C largest) {
  auto sum = hn::Zero(d);
  for_vectors(d, steps, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto e = exp(d, hn::Sub(load(d, scores + i, part), hn::Set(d, largest)));
    sum = hn::Add(sum, only(d, e, part));
    store(d, e, scores + i, part);
  });
  return sum_of_lanes(d, sum);
}

/// out[c] = scale * sum over steps of weights[s] * value[c] of step s.
template <class D, typename T, typename C>
HWY_INLINE void mix_values(D d, const C* weights, C scale, const Past<T>& values,
                           std::int64_t width, T* out) {
  const std::int64_t L = lanes(d);
  std::int64_t c = 0;
  for (; c + 4 * L <= width; c += 4 * L) {  // four sums hide the latency of the products
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (std::int64_t s = 0; s < values.steps; ++s) {
      const auto w = hn::Set(d, weights[s]);
      const T* value = values.at(s) + c;
      s0 = hn::MulAdd(w, load(d, value), s0);
      s1 = hn::MulAdd(w, load(d, value + L), s1);
      s2 = hn::MulAdd(w, load(d, value + 2 * L), s2);
      s3 = hn::MulAdd(w, load(d, value + 3 * L), s3);
    }
    const auto factor = hn::Set(d, scale);
    store(d, hn::Mul(factor, s0), out + c);
    store(d, hn::Mul(factor, s1), out + c + L);
    store(d, hn::Mul(factor, s2), out + c + 2 * L);
    store(d, hn::Mul(factor, s3), out + c + 3 * L);
  }
  for_vectors(d, width - c, [&](std::int64_t i, auto part) HWY_ATTR {
    auto sum = hn::Zero(d);
    for (std::int64_t s = 0; s < values.steps; ++s) {
      sum = hn::MulAdd(hn::Set(d, weights[s]), load(d, values.at(s) + c + i, part), sum);
    }
    store(d, hn::Mul(hn::Set(d, scale), sum), out + c + i, part);
  });
}

/// Pairs (row, head) in [begin, end), numbered row * heads + head.
template <typename T>
void cached_attention_pairs(const CachedAttentionArgs& in, std::int64_t begin, std::int64_t end,
                            const Tensor& out, const Tensor& memory) {
  using C = ComputeType<T>;
  const VectorTag<T> d;
  const std::int64_t heads = in.spec.heads, K = in.spec.key_width, V = in.spec.value_width;
  C* scores = memory.data<C>();
  for (std::int64_t pair = begin; pair < end; ++pair) {
    const std::int64_t r = pair / heads, h = pair % heads;
    Past<T> past{.first = in.cache.data<T>() + h * K,
                 .stride = in.cache.row_stride(),
                 .slots = in.slots.data<std::int32_t>() + r * in.slots.row_stride(),
                 .steps = in.lengths.present() ? in.lengths.data<std::int32_t>()[r] : in.steps};
    const C largest = score_steps(d, in.q.data<T>() + r * in.q.row_stride() + h * K, K,
                                  static_cast<C>(in.spec.scale), past, scores);
    const C sum = exponentiate(d, scores, past.steps, largest);
    past.first = in.cache.data<T>() + heads * K + h * V;
    mix_values(d, scores, 1 / sum, past, V, out.data<T>() + r * out.row_stride() + h * V);
  }
}

auto pairs_kernel() {
  return PerType{cached_attention_pairs<float>, cached_attention_pairs<double>,
                 cached_attention_pairs<bfloat16>};
}

}  // namespace
}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/dispatch.h"
#include "model/ops/parts.h"

namespace octavo {
namespace {

HWY_EXPORT(pairs_kernel);

}  // namespace

template <typename T>
void cached_attention_forward(OnCpu, Context& ctx, const CachedAttentionArgs& in, const Tensor& out,
                              const Tensor& scratch) {
  const auto pairs = HWY_DYNAMIC_DISPATCH(pairs_kernel)().template get<T>();
  const std::int64_t n = in.q.dim(0) * in.spec.heads;
  const auto run = [&](std::int64_t part, std::int64_t parts, const Tensor& memory) {
    pairs(in, n * part / parts, n * (part + 1) / parts, out, memory);
  };
  for_parts(ctx, scratch, n * in.steps * (in.spec.key_width + in.spec.value_width), run);
}

template void cached_attention_forward<float>(OnCpu, Context&, const CachedAttentionArgs&,
                                              const Tensor&, const Tensor&);
template void cached_attention_forward<double>(OnCpu, Context&, const CachedAttentionArgs&,
                                               const Tensor&, const Tensor&);
template void cached_attention_forward<bfloat16>(OnCpu, Context&, const CachedAttentionArgs&,
                                                 const Tensor&, const Tensor&);

}  // namespace octavo
#endif  // HWY_ONCE
