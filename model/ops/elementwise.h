#pragma once

#include "core/context.h"
#include "core/tensor.h"

namespace octavo {

/// Sets every byte of a contiguous tensor to zero.
void zero(Context& ctx, Tensor t);

/// Copies the rows of a matrix; those of either side may be apart. Both have one type.
void copy_rows(Context& ctx, const Tensor& from, Tensor to);

/// to = from, element by element, between float32, float64 and bf16; both contiguous.
void convert(Context& ctx, const Tensor& from, Tensor to);

}  // namespace octavo
