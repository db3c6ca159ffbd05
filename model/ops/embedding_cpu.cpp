#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/ops/embedding_cpu.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "model/ops/dropout-inl.h"
#include "model/ops/embedding.h"
#include "model/ops/keyed_sum.h"
#include "model/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {
namespace {

template <typename T>
void forward_rows(const EmbeddingArgs& in, const Tensor& y, std::int64_t begin, std::int64_t end) {
  using C = ComputeType<T>;
  const VectorTag<T> d;
  const std::int64_t D = y.dim(1);
  const auto* ids = in.tokens.ids.data<std::int32_t>();
  const auto* places = in.tokens.positions.data<std::int32_t>();
  const C* positions = in.positions.present() ? in.positions.data<C>() : nullptr;
  const auto scale = broadcast(d, in.scale);
  DropoutRow mask(d, in.dropout, D);
  const bool drop = in.dropout.on();
  for (std::int64_t n = begin; n < end; ++n) {
    T* to = y.data<T>() + n * D;
    if (n >= in.tokens.tokens) {
      std::fill(to, to + D, T(0));
      continue;
    }
    const T* row = in.table.data<T>() + ids[n] * D;
    const C* place = positions == nullptr ? nullptr : positions + places[n] * D;
    if (drop) mask.start(in.dropout.ordinals.data<std::int64_t>()[n]);
    for_vectors(d, D, [&](std::int64_t i, auto part) HWY_ATTR {
      auto v = hn::Mul(scale, load(d, row + i, part));
      if (place != nullptr) v = hn::Add(v, load(d, place + i, part));
      if (drop) v = mask.apply(d, v, i);
      store(d, v, to + i, part);
    });
  }
}

template <typename T>
void backward_keys(const EmbeddingArgs& in, const Tensor& dy, const KeyedSum& sum,
                   std::int64_t begin, std::int64_t end) {
  using C = ComputeType<T>;
  const VectorTag<T> d;
  const std::int64_t D = dy.dim(1);
  const auto scale = broadcast(d, sum.scale);
  const auto* first = sum.first.data<std::int32_t>();
  const auto* order = sum.order.data<std::int32_t>();
  DropoutRow mask(d, in.dropout, D);
  const bool drop = in.dropout.on();
  for (std::int64_t key = begin; key < end; ++key) {
    C* to = sum.sums.data<C>() + key * D;
    for (std::int32_t i = first[key]; i < first[key + 1]; ++i) {
      const std::int64_t n = order[i];
      const T* from = dy.data<T>() + n * D;
      if (drop) mask.start(in.dropout.ordinals.data<std::int64_t>()[n]);
      for_vectors(d, D, [&](std::int64_t c, auto part) HWY_ATTR {
        auto v = load(d, from + c, part);
        if (drop) v = mask.apply(d, v, c);
        store(d, hn::MulAdd(scale, v, load(d, to + c, part)), to + c, part);
      });
    }
  }
}

auto forward_kernel() {
  return PerType{forward_rows<float>, forward_rows<double>, forward_rows<bfloat16>};
}
auto backward_kernel() {
  return PerType{backward_keys<float>, backward_keys<double>, backward_keys<bfloat16>};
}

}  // namespace
}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "core/dispatch.h"
#include "core/parallel.h"

namespace octavo {
namespace {

HWY_EXPORT(forward_kernel);
HWY_EXPORT(backward_kernel);

std::span<const std::int32_t> real_tokens(const EmbeddingArgs& in, const Tensor& per_row) {
  return {per_row.data<std::int32_t>(), static_cast<std::size_t>(in.tokens.tokens)};
}

void expect_in_range(std::span<const std::int32_t> values, std::int64_t limit, const char* what) {
  std::int32_t low = 0, high = -1;
  for (const std::int32_t v : values) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  if (low < 0 || high >= limit) {
    throw InternalError(
        fmt::format("embedding: {} from {} to {}, but there are {}", what, low, high, limit));
  }
}

// Fills sum.first and sum.order: a counting sort.
void sort_by_key(std::span<const std::int32_t> keys, const KeyedSum& sum) {
  auto* first = sum.first.data<std::int32_t>();
  auto* order = sum.order.data<std::int32_t>();
  const std::int64_t K = sum.sums.dim(0);
  std::fill(first, first + K + 1, 0);
  for (const std::int32_t key : keys) ++first[key];
  std::int32_t total = 0;
  for (std::int64_t k = 0; k <= K; ++k) {
    total += first[k];
    first[k] = total;  // the end of k's tokens; walking back from there leaves the beginning
  }
  for (std::size_t n = keys.size(); n-- > 0;) {
    order[--first[keys[n]]] = static_cast<std::int32_t>(n);
  }
}

}  // namespace

template <typename T>
void embedding_forward(OnCpu, Context& ctx, const EmbeddingArgs& in, const Tensor& y) {
  expect_in_range(real_tokens(in, in.tokens.ids), in.table.dim(0), "pieces");
  if (in.positions.present()) {
    expect_in_range(real_tokens(in, in.tokens.positions), in.positions.dim(0), "positions");
  }
  const auto rows = HWY_DYNAMIC_DISPATCH(forward_kernel)().template get<T>();
  parallel_for(ctx, y.dim(0), grain_of(y.dim(1)),
               [&](std::int64_t begin, std::int64_t end) { rows(in, y, begin, end); });
}

template <typename T>
void add_by_key(OnCpu, Context& ctx, const EmbeddingArgs& in, const Tensor& dy,
                const KeyedSum& sum) {
  const auto keys = real_tokens(in, sum.keys);
  expect_in_range(keys, sum.sums.dim(0), "keys");
  sort_by_key(keys, sum);
  const auto kernel = HWY_DYNAMIC_DISPATCH(backward_kernel)().template get<T>();
  // Cut where tokens are equally many, then move each cut to the next key: a key belongs to one
  // thread, so its sum is made in token order.
  const auto* first = sum.first.data<std::int32_t>();
  const auto key_at = [&](std::int64_t token) {
    const auto* end = first + sum.sums.dim(0);
    return std::lower_bound(first, end, static_cast<std::int32_t>(token)) - first;
  };
  parallel_for(ctx, in.tokens.tokens, grain_of(dy.dim(1)),
               [&](std::int64_t begin, std::int64_t end) {
                 kernel(in, dy, sum, key_at(begin), key_at(end));
               });
}

template void embedding_forward<float>(OnCpu, Context&, const EmbeddingArgs&, const Tensor&);
template void embedding_forward<double>(OnCpu, Context&, const EmbeddingArgs&, const Tensor&);
template void embedding_forward<bfloat16>(OnCpu, Context&, const EmbeddingArgs&, const Tensor&);
template void add_by_key<float>(OnCpu, Context&, const EmbeddingArgs&, const Tensor&,
                                const KeyedSum&);
template void add_by_key<double>(OnCpu, Context&, const EmbeddingArgs&, const Tensor&,
                                 const KeyedSum&);
template void add_by_key<bfloat16>(OnCpu, Context&, const EmbeddingArgs&, const Tensor&,
                                   const KeyedSum&);

}  // namespace octavo
#endif  // HWY_ONCE
