#pragma once

#include "core/context.h"
#include "core/tensor.h"

namespace octavo {

/// Sets every byte of a contiguous tensor to zero.
void zero(Context& ctx, Tensor t);

/// Row r of `from` is copied to row places[r] of `to`; rows of either may be apart. Both have one
/// type.
/// @param from [R, C]. @param places  i32 [R], no two alike, each a row of `to` [rows, C].
void scatter_rows(Context& ctx, const Tensor& from, const Tensor& places, Tensor to);

/// to = from, element by element, between float32, float64 and bf16; both contiguous.
void convert(Context& ctx, const Tensor& from, Tensor to);

}  // namespace octavo
