#include "model/ops/linear.h"

#include "core/dispatch.h"
#include "model/ops/column_sums.h"
#include "model/ops/product_cpu.h"

namespace octavo {

template <typename T>
void multiply(OnCpu, Context& ctx, const Product& product, const ProductOperands& operands,
              const Tensor& workspace);

namespace {

std::int64_t bytes_of_matrix(std::int64_t rows, std::int64_t columns, DType type) {
  return rows * columns * static_cast<std::int64_t>(bytes_of(type));
}

// x [N, I] times weight^T, plus bias.
Product forward_product(const LinearArgs& in, const Tensor& y) {
  const std::int64_t N = in.x.dim(0), I = in.x.dim(1), O = in.weight.dim(0);
  return {.type = in.x.dtype(),
          .c_type = y.dtype(),
          .m = N,
          .n = O,
          .k = I,
          .a_row = in.x.row_stride(),
          .a_column = 1,
          .b_row = 1,
          .b_column = in.weight.row_stride(),
          .c_row = y.row_stride(),
          .bias = in.bias.present()};
}

// dy [N, O] times weight.
Product dx_product(const LinearArgs& in, const Tensor& dy, const LinearGradients& out) {
  const std::int64_t N = dy.dim(0), O = dy.dim(1), I = in.weight.dim(1);
  return {.type = dy.dtype(),
          .c_type = dy.dtype(),
          .m = N,
          .n = I,
          .k = O,
          .a_row = dy.row_stride(),
          .a_column = 1,
          .b_row = in.weight.row_stride(),
          .b_column = 1,
          .c_row = out.dx.row_stride(),
          .accumulate = out.add_to_dx};
}

// dy^T [O, N] times x, added to dweight.
Product dweight_product(const LinearArgs& in, const Tensor& dy, const LinearGradients& out) {
  const std::int64_t N = dy.dim(0), O = dy.dim(1), I = in.x.dim(1);
  return {.type = dy.dtype(),
          .c_type = out.dweight.dtype(),
          .m = O,
          .n = I,
          .k = N,
          .a_row = 1,
          .a_column = dy.row_stride(),
          .b_row = in.x.row_stride(),
          .b_column = 1,
          .c_row = out.dweight.row_stride(),
          .accumulate = true};
}

// The library can't multiply what has no elements; float64 does not go through it at all.
bool through_library(const Product& p) {
  return p.type != DType::f64 && p.m > 0 && p.n > 0 && p.k > 0;
}

void multiply(Context& ctx, const Product& product, const ProductOperands& operands) {
  const ArenaScope scratch(ctx.scratch());
  Tensor workspace;
  if (through_library(product)) {
    const std::int64_t bytes = ctx.state<ProductLibrary>().workspace(product);
    workspace = ctx.scratch().allocate({bytes}, DType::u8);
  }
  dispatch(ctx, product.type,
           [&]<typename T>(auto on) { multiply<T>(on, ctx, product, operands, workspace); });
}

void multiply_packed(Context& ctx, const PackedProduct& product) {
  auto& products = ctx.state<PackedProducts>();
  const ArenaScope scratch(ctx.scratch());
  const Tensor workspace = ctx.scratch().allocate({products.workspace(product)}, DType::u8);
  if (ctx.device() == Device::plan) return;
  products.run(product, reinterpret_cast<std::byte*>(workspace.data<std::uint8_t>()));
}

}  // namespace

void linear_forward(Context& ctx, const LinearArgs& in, Tensor y) {
  const std::int64_t N = in.x.dim(0), I = in.x.dim(1), O = in.weight.dim(0);
  const DType type = in.x.dtype();
  expect_shape(in.weight, {O, I}, "weight");
  expect_dtype(in.weight, type, "weight");
  expect_shape(y, {N, O}, "y");
  if (y.dtype() != statistics_type(type)) expect_dtype(y, type, "y");
  if (in.bias.present()) {
    expect_shape(in.bias, {O}, "bias");
    expect_dtype(in.bias, type, "bias");
  }
  const std::int64_t moved = bytes_of_matrix(N, I, type) + bytes_of_matrix(O, I, type) +
                             bytes_of_matrix(N, O, y.dtype()) + in.bias.bytes();
  const OpScope scope(
      ctx, {.name = "linear_forward", .flops = 2 * N * O * I, .bytes = moved, .shape = {N, O, I}});
  if (in.packed != nullptr && N > 0) {
    multiply_packed(ctx, {.x = in.x, .bias = in.bias, .weight = *in.packed, .y = y});
    return;
  }
  multiply(ctx, forward_product(in, y),
           {.a = in.x.raw(), .b = in.weight.raw(), .bias = in.bias.raw(), .c = y.raw()});
}

void linear_backward(Context& ctx, const LinearArgs& in, const Tensor& dy,
                     const LinearGradients& out) {
  const std::int64_t N = dy.dim(0), O = dy.dim(1);
  const DType type = dy.dtype();
  if (out.dx.present()) {
    const std::int64_t I = in.weight.dim(1);
    expect_shape(in.weight, {O, I}, "weight");
    expect_dtype(in.weight, type, "weight");
    expect_shape(out.dx, {N, I}, "dx");
    expect_dtype(out.dx, type, "dx");
    const std::int64_t moved = bytes_of_matrix(N, O, type) + bytes_of_matrix(O, I, type) +
                               (out.add_to_dx ? 2 : 1) * bytes_of_matrix(N, I, type);
    const OpScope scope(
        ctx, {.name = "linear_dx", .flops = 2 * N * O * I, .bytes = moved, .shape = {N, O, I}});
    multiply(ctx, dx_product(in, dy, out),
             {.a = dy.raw(), .b = in.weight.raw(), .bias = nullptr, .c = out.dx.raw()});
  }
  if (out.dweight.present()) {
    const std::int64_t I = in.x.dim(1);
    expect_shape(in.x, {N, I}, "x");
    expect_dtype(in.x, type, "x");
    expect_shape(out.dweight, {O, I}, "dweight");
    expect_dtype(out.dweight, statistics_type(type), "dweight");
    const std::int64_t moved = bytes_of_matrix(N, O, type) + bytes_of_matrix(N, I, type) +
                               2 * bytes_of_matrix(O, I, statistics_type(type));
    const OpScope scope(
        ctx,
        {.name = "linear_dweight", .flops = 2 * N * O * I, .bytes = moved, .shape = {N, O, I}});
    multiply(ctx, dweight_product(in, dy, out),
             {.a = dy.raw(), .b = in.x.raw(), .bias = nullptr, .c = out.dweight.raw()});
  }
  if (out.dbias.present()) add_column_sums(ctx, dy, out.dbias);
}

}  // namespace octavo
