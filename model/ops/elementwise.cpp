#include "model/ops/elementwise.h"

#include "core/dispatch.h"

namespace octavo {

void zero(OnCpu, Context& ctx, const Tensor& t);
void copy_rows(OnCpu, Context& ctx, const Tensor& from, const Tensor& to);
template <typename T>
void convert(OnCpu, Context& ctx, const Tensor& from, const Tensor& to);

void zero(Context& ctx, Tensor t) {
  expect(t.contiguous(), "zero: rows are apart");
  const OpScope scope(ctx, {.name = "zero", .bytes = t.bytes()});
  if (t.elements() == 0) return;
  // Any type: a byte is a byte.
  dispatch(ctx, DType::f32, [&]<typename T>(auto on) { zero(on, ctx, t); });
}

void copy_rows(Context& ctx, const Tensor& from, Tensor to) {
  expect_shape(to, {from.dim(0), from.dim(1)}, "to");
  expect_dtype(to, from.dtype(), "to");
  const OpScope scope(ctx, {.name = "copy_rows", .bytes = 2 * from.bytes()});
  // Any type: a byte is a byte.
  dispatch(ctx, DType::f32, [&]<typename T>(auto on) { copy_rows(on, ctx, from, to); });
}

void convert(Context& ctx, const Tensor& from, Tensor to) {
  expect(from.contiguous() && to.contiguous(), "convert: rows are apart");
  expect(from.elements() == to.elements(), "convert: another number of elements");
  const OpScope scope(ctx, {.name = "convert", .bytes = from.bytes() + to.bytes()});
  dispatch(ctx, from.dtype(), [&]<typename T>(auto on) { convert<T>(on, ctx, from, to); });
}

}  // namespace octavo
