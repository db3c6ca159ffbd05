#include "model/ops/column_sums.h"

#include "core/dispatch.h"

namespace octavo {

template <typename T>
void column_partials(OnCpu, Context& ctx, const Tensor& x, const Tensor& partials);
template <typename T>
void add_partial_sums(OnCpu, Context& ctx, const Tensor& partials, const Tensor& sums);

void add_column_sums(Context& ctx, const Tensor& x, Tensor sums) {
  const std::int64_t N = x.dim(0), O = x.dim(1);
  expect_shape(sums, {O}, "sums");
  expect_dtype(sums, statistics_type(x.dtype()), "sums");
  const OpScope scope(
      ctx, {.name = "column_sums", .flops = N * O, .bytes = x.bytes() + 2 * sums.bytes()});
  const ArenaScope scratch(ctx.scratch());
  const Tensor partials = ctx.scratch().allocate({sum_blocks(N), O}, sums.dtype());
  dispatch(ctx, x.dtype(), [&]<typename T>(auto on) { column_partials<T>(on, ctx, x, partials); });
  add_partial_sums(ctx, partials, sums);
}

void add_partial_sums(Context& ctx, const Tensor& partials, Tensor sums) {
  expect_shape(sums, {partials.dim(1)}, "sums");
  expect_dtype(sums, partials.dtype(), "sums");
  dispatch(ctx, sums.dtype(),
           [&]<typename T>(auto on) { add_partial_sums<T>(on, ctx, partials, sums); });
}

}  // namespace octavo
