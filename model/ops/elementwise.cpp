#include "model/ops/elementwise.h"

#include <algorithm>

#include "core/dispatch.h"

namespace octavo {

void zero(OnCpu, Context& ctx, const Tensor& t);
void scatter_rows(OnCpu, Context& ctx, const Tensor& from, const Tensor& places, const Tensor& to);
template <typename T>
void convert(OnCpu, Context& ctx, const Tensor& from, const Tensor& to);

void zero(Context& ctx, Tensor t) {
  expect(t.contiguous(), "zero: rows are apart");
  const OpScope scope(ctx, {.name = "zero", .bytes = t.bytes()});
  if (t.elements() == 0) return;
  // Any type: a byte is a byte.
  dispatch(ctx, DType::f32, [&]<typename T>(auto on) { zero(on, ctx, t); });
}

void scatter_rows(Context& ctx, const Tensor& from, const Tensor& places, Tensor to) {
  expect_shape(to, {to.dim(0), from.dim(1)}, "to");
  expect_dtype(to, from.dtype(), "to");
  expect_shape(places, {from.dim(0)}, "places");
  expect_dtype(places, DType::i32, "places");
  if (ctx.device() == Device::cpu) {
    const auto* place = places.data<std::int32_t>();
    expect(std::all_of(place, place + places.dim(0),
                       [&](std::int32_t row) { return row >= 0 && row < to.dim(0); }),
           "scatter_rows: a place lies outside");
  }
  const OpScope scope(ctx, {.name = "scatter_rows", .bytes = 2 * from.bytes()});
  // Any type: a byte is a byte.
  dispatch(ctx, DType::f32, [&]<typename T>(auto on) { scatter_rows(on, ctx, from, places, to); });
}

void convert(Context& ctx, const Tensor& from, Tensor to) {
  expect(from.contiguous() && to.contiguous(), "convert: rows are apart");
  expect(from.elements() == to.elements(), "convert: another number of elements");
  const OpScope scope(ctx, {.name = "convert", .bytes = from.bytes() + to.bytes()});
  dispatch(ctx, from.dtype(), [&]<typename T>(auto on) { convert<T>(on, ctx, from, to); });
}

}  // namespace octavo
