#include "core/dispatch.h"
#include "core/parallel.h"
#include "model/ops/product_cpu.h"

namespace octavo {
namespace {

// The product as its definition says, for float64 (gradient tests) and for matrices without
// elements. Rows of c in parallel; sums in the order of k.
template <typename T, typename TC>
void multiply_plainly(Context& ctx, const Product& p, const ProductOperands& operands) {
  const auto* a = static_cast<const T*>(operands.a);
  const auto* b = static_cast<const T*>(operands.b);
  const auto* bias = static_cast<const T*>(operands.bias);
  auto* c = static_cast<TC*>(operands.c);
  using Sum = ComputeType<T>;
  parallel_for(ctx, p.m, grain_of(p.n * p.k), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        Sum sum = p.bias ? static_cast<Sum>(bias[j]) : Sum{0};
        if (p.accumulate) sum += static_cast<Sum>(c[i * p.c_row + j]);
        for (std::int64_t k = 0; k < p.k; ++k) {
          sum += static_cast<Sum>(a[i * p.a_row + k * p.a_column]) *
                 static_cast<Sum>(b[k * p.b_row + j * p.b_column]);
        }
        c[i * p.c_row + j] = static_cast<TC>(sum);
      }
    }
  });
}

}  // namespace

template <typename T>
void multiply(OnCpu, Context& ctx, const Product& product, const ProductOperands& operands,
              const Tensor& workspace) {
  if (workspace.present()) {
    ctx.state<ProductLibrary>().run(product, operands, workspace.raw());
  } else if (product.c_type == product.type) {
    multiply_plainly<T, T>(ctx, product, operands);
  } else {
    multiply_plainly<T, ComputeType<T>>(ctx, product, operands);
  }
}

template void multiply<float>(OnCpu, Context&, const Product&, const ProductOperands&,
                              const Tensor&);
template void multiply<double>(OnCpu, Context&, const Product&, const ProductOperands&,
                               const Tensor&);
template void multiply<bfloat16>(OnCpu, Context&, const Product&, const ProductOperands&,
                                 const Tensor&);

}  // namespace octavo
