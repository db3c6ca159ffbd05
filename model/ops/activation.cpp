#include "model/ops/activation.h"

#include "core/dispatch.h"
#include "model/ops/dropout.h"

namespace octavo {

template <typename T>
void activation_forward(OnCpu, Context& ctx, const ActivationArgs& in, const Tensor& y);
template <typename T>
void activation_backward(OnCpu, Context& ctx, const ActivationArgs& in, const Tensor& y,
                         const Tensor& dy, const Tensor& dx);

namespace {

void expect_matrix(const Tensor& t, const Tensor& like, const char* name) {
  expect_shape(t, {like.dim(0), like.dim(1)}, name);
  expect_dtype(t, like.dtype(), name);
  expect(t.contiguous(), "activation: rows are apart");
}

// By element: a comparison for relu; a cubic, an exponential and a quotient for gelu.
std::int64_t flops_of(Activation kind) {
  return kind == Activation::relu ? 1 : 20;
}

}  // namespace

void activation_forward(Context& ctx, const ActivationArgs& in, Tensor y) {
  expect_matrix(in.x, in.x, "x");
  expect_matrix(y, in.x, "y");
  expect_dropout(in.dropout, y.dim(0));
  const OpScope scope(ctx, {.name = "activation_forward",
                            .flops = flops_of(in.kind) * y.elements(),
                            .bytes = 2 * y.bytes()});
  dispatch(ctx, y.dtype(), [&]<typename T>(auto on) { activation_forward<T>(on, ctx, in, y); });
}

void activation_backward(Context& ctx, const ActivationArgs& in, const Tensor& y, const Tensor& dy,
                         Tensor dx) {
  expect_matrix(in.kind == Activation::relu ? y : in.x, dy, "what forward left");
  expect_matrix(dx, dy, "dx");
  expect_dropout(in.dropout, dy.dim(0));
  const OpScope scope(ctx, {.name = "activation_backward",
                            .flops = flops_of(in.kind) * dy.elements(),
                            .bytes = 3 * dy.bytes()});
  dispatch(ctx, dy.dtype(),
           [&]<typename T>(auto on) { activation_backward<T>(on, ctx, in, y, dy, dx); });
}

}  // namespace octavo
