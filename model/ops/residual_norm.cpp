#include "model/ops/residual_norm.h"

#include "core/dispatch.h"
#include "model/ops/column_sums.h"
#include "model/ops/dropout.h"

namespace octavo {

template <typename T>
void residual_norm_forward(OnCpu, Context& ctx, const ResidualNormArgs& in, const Tensor& y,
                           const ResidualNormSaved& saved);
template <typename T>
void residual_norm_backward(OnCpu, Context& ctx, const ResidualNormArgs& in,
                            const ResidualNormSaved& saved, const Tensor& dy,
                            const ResidualNormGradients& out, const Tensor& partials);

namespace {

void expect_matrix(const Tensor& t, std::int64_t rows, std::int64_t width, DType type,
                   const char* name) {
  expect_shape(t, {rows, width}, name);
  expect_dtype(t, type, name);
  expect(t.contiguous(), "residual_norm: rows are apart");
}

// gamma, beta, statistics and dropout: common to both directions.
void expect_common(const ResidualNormArgs& in, const ResidualNormSaved& saved, std::int64_t N,
                   std::int64_t D, DType type) {
  const DType statistics = statistics_type(type);
  expect(D > 0, "residual_norm: a row without columns has no mean");
  expect(in.epsilon > 0, "residual_norm: epsilon must be positive");
  expect_shape(in.gamma, {D}, "gamma");
  expect_dtype(in.gamma, statistics, "gamma");
  expect_shape(saved.mean, {N}, "mean");
  expect_dtype(saved.mean, statistics, "mean");
  expect_shape(saved.rstd, {N}, "rstd");
  expect_dtype(saved.rstd, statistics, "rstd");
  expect_dropout(in.dropout, N);
}

}  // namespace

void residual_norm_forward(Context& ctx, const ResidualNormArgs& in, Tensor y,
                           const ResidualNormSaved& saved) {
  const std::int64_t N = in.residual.dim(0), D = in.residual.dim(1);
  const DType type = in.residual.dtype();
  expect_matrix(in.residual, N, D, type, "residual");
  expect_matrix(y, N, D, type, "y");
  expect_common(in, saved, N, D, type);
  expect_shape(in.beta, {D}, "beta");
  expect_dtype(in.beta, statistics_type(type), "beta");
  if (in.branch.present()) {
    expect_matrix(in.branch, N, D, type, "branch");
    expect_matrix(saved.sum, N, D, type, "sum");
  } else {
    expect(!in.dropout.on(), "residual_norm: dropout needs a branch");
  }
  const std::int64_t matrices = in.branch.present() ? 4 : 2;
  const OpScope scope(
      ctx, {.name = "residual_norm_forward",
            .flops = 8 * N * D,
            .bytes = matrices * y.bytes() + 2 * in.gamma.bytes() + 2 * saved.mean.bytes()});
  dispatch(ctx, type,
           [&]<typename T>(auto on) { residual_norm_forward<T>(on, ctx, in, y, saved); });
}

void residual_norm_backward(Context& ctx, const ResidualNormArgs& in,
                            const ResidualNormSaved& saved, const Tensor& dy,
                            const ResidualNormGradients& out) {
  const std::int64_t N = dy.dim(0), D = dy.dim(1);
  const DType type = dy.dtype(), statistics = statistics_type(type);
  expect_matrix(dy, N, D, type, "dy");
  expect_matrix(saved.sum, N, D, type, "sum");
  expect_common(in, saved, N, D, type);
  expect_matrix(out.dresidual, N, D, type, "dresidual");
  std::int64_t matrices = 3;
  for (const auto& [t, name] : {std::pair{out.dsum_in, "dsum_in"}, {out.dbranch, "dbranch"}}) {
    if (!t.present()) continue;
    expect_matrix(t, N, D, type, name);
    ++matrices;
  }
  for (const auto& [t, name] : {std::pair{out.dgamma, "dgamma"}, {out.dbeta, "dbeta"}}) {
    if (!t.present()) continue;
    expect_shape(t, {D}, name);
    expect_dtype(t, statistics, name);
  }
  const OpScope scope(ctx,
                      {.name = "residual_norm_backward",
                       .flops = 14 * N * D,
                       .bytes = matrices * dy.bytes() + in.gamma.bytes() + 2 * out.dgamma.bytes() +
                                2 * out.dbeta.bytes() + 2 * saved.mean.bytes()});
  const ArenaScope scratch(ctx.scratch());
  const Tensor partials = ctx.scratch().allocate({sum_blocks(N), 2 * D}, statistics);
  dispatch(ctx, type, [&]<typename T>(auto on) {
    residual_norm_backward<T>(on, ctx, in, saved, dy, out, partials);
  });
  if (out.dgamma.present()) add_partial_sums(ctx, partials.columns(0, D), out.dgamma);
  if (out.dbeta.present()) add_partial_sums(ctx, partials.columns(D, D), out.dbeta);
}

}  // namespace octavo
