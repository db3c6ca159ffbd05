#include "model/ops/elementwise.h"

#include "core/dispatch.h"

namespace octavo {

void zero(OnCpu, Context& ctx, const Tensor& t);
template <typename T>
void convert(OnCpu, Context& ctx, const Tensor& from, const Tensor& to);
template <typename T>
void add_to(OnCpu, Context& ctx, const Tensor& x, const Tensor& y);

void zero(Context& ctx, Tensor t) {
  expect(t.contiguous(), "zero: rows are apart");
  const OpScope scope(ctx, {.name = "zero", .bytes = t.bytes()});
  if (t.elements() == 0) return;
  // Any type: a byte is a byte.
  dispatch(ctx, DType::f32, [&]<typename T>(auto on) { zero(on, ctx, t); });
}

void convert(Context& ctx, const Tensor& from, Tensor to) {
  expect(from.contiguous() && to.contiguous(), "convert: rows are apart");
  expect(from.elements() == to.elements(), "convert: another number of elements");
  const OpScope scope(ctx, {.name = "convert", .bytes = from.bytes() + to.bytes()});
  dispatch(ctx, from.dtype(), [&]<typename T>(auto on) { convert<T>(on, ctx, from, to); });
}

void add_to(Context& ctx, const Tensor& x, Tensor y) {
  expect(x.contiguous() && y.contiguous(), "add_to: rows are apart");
  expect(x.elements() == y.elements(), "add_to: another number of elements");
  expect_dtype(x, y.dtype(), "x");
  const OpScope scope(
      ctx, {.name = "add_to", .flops = y.elements(), .bytes = x.bytes() + 2 * y.bytes()});
  dispatch(ctx, y.dtype(), [&]<typename T>(auto on) { add_to<T>(on, ctx, x, y); });
}

}  // namespace octavo
