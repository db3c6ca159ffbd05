#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/ops/column_sums_cpu.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "core/tensor.h"
#include "model/ops/column_sums.h"
#include "model/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {
namespace {

// Rows that are read side by side: each is a stream that the processor fetches ahead.
constexpr std::int64_t kStreams = 8;

// to[c] (+)= x[0, c] + x[1, c] + ..., in this order, of at most kStreams rows.
template <bool kAdd, typename T>
HWY_INLINE void sum_streams(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width,
                            ComputeType<T>* to) {
  const VectorTag<T> d;
  for_vectors(d, width, [&](std::int64_t c, auto part) HWY_ATTR {
    auto sum = hn::Zero(d);
    if constexpr (kAdd) sum = load(d, to + c, part);
    for (std::int64_t n = 0; n < rows; ++n) sum = hn::Add(sum, load(d, x + n * stride + c, part));
    store(d, sum, to + c, part);
  });
}

// to[0..width) (+)= sum over rows of x, in the order of the rows.
template <bool kAdd, typename T>
void sum_rows(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width,
              ComputeType<T>* to) {
  const std::int64_t first = HWY_MIN(rows, kStreams);
  sum_streams<kAdd>(x, first, stride, width, to);
  for (std::int64_t n = first; n < rows; n += kStreams) {
    sum_streams<true>(x + n * stride, HWY_MIN(rows - n, kStreams), stride, width, to);
  }
}

template <typename T>
void partials_of_blocks(const Tensor& x, const Tensor& partials, std::int64_t begin,
                        std::int64_t end) {
  const std::int64_t N = x.dim(0), O = x.dim(1);
  for (std::int64_t b = begin; b < end; ++b) {
    const std::int64_t first = b * kRowsPerSum, rows = HWY_MIN(kRowsPerSum, N - first);
    sum_rows<false>(x.data<T>() + first * x.row_stride(), rows, x.row_stride(), O,
                    partials.data<ComputeType<T>>() + b * partials.row_stride());
  }
}

template <typename T>
void add_columns(const Tensor& partials, const Tensor& sums, std::int64_t begin, std::int64_t end) {
  sum_rows<true>(partials.data<T>() + begin, partials.dim(0), partials.row_stride(), end - begin,
                 sums.data<T>() + begin);
}

auto partials_kernel() {
  return PerType{partials_of_blocks<float>, partials_of_blocks<double>,
                 partials_of_blocks<bfloat16>};
}
// Sums have a statistics type: float or double.
auto add_kernel() {
  return PerType<void(const Tensor&, const Tensor&, std::int64_t, std::int64_t)>{
      add_columns<float>, add_columns<double>, nullptr};
}

}  // namespace
}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/dispatch.h"
#include "core/parallel.h"
#include "core/token_batch.h"

namespace octavo {
namespace {

HWY_EXPORT(partials_kernel);
HWY_EXPORT(add_kernel);

}  // namespace

template <typename T>
void column_partials(OnCpu, Context& ctx, const Tensor& x, const Tensor& partials) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(partials_kernel)().template get<T>();
  const std::int64_t grain = grain_of(kRowsPerSum * x.dim(1));
  parallel_for(ctx, partials.dim(0), grain,
               [&](std::int64_t begin, std::int64_t end) { kernel(x, partials, begin, end); });
}

template <typename T>
void add_partial_sums(OnCpu, Context& ctx, const Tensor& partials, const Tensor& sums) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(add_kernel)().template get<T>();
  // Whole cache lines to a thread.
  const std::int64_t grain = round_up(grain_of(partials.dim(0)), 64);
  parallel_for(ctx, sums.dim(0), grain,
               [&](std::int64_t begin, std::int64_t end) { kernel(partials, sums, begin, end); });
}

template void column_partials<float>(OnCpu, Context&, const Tensor&, const Tensor&);
template void column_partials<double>(OnCpu, Context&, const Tensor&, const Tensor&);
template void column_partials<bfloat16>(OnCpu, Context&, const Tensor&, const Tensor&);
template void add_partial_sums<float>(OnCpu, Context&, const Tensor&, const Tensor&);
template void add_partial_sums<double>(OnCpu, Context&, const Tensor&, const Tensor&);
// dispatch() names it; sums of this type do not exist.
template void add_partial_sums<bfloat16>(OnCpu, Context&, const Tensor&, const Tensor&);

}  // namespace octavo
#endif  // HWY_ONCE
