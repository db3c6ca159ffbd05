#pragma once

#include "core/context.h"
#include "core/tensor.h"

namespace octavo {

/// Rounds each row of x to eight bits: x[n, i] is near scales[n] * q[n, i], q from -127 to 127.
/// scales[n] is the row's largest magnitude / 127; a row of zeros has the scale 0. A row with a NaN
/// or an infinity has that for its scale, so that what is computed with it is not finite either.
/// @param x       [N, I], f32; rows may be apart
/// @param q       [N, I], u8 that hold signed numbers, rows side by side
/// @param scales  [N], f32
void quantise_rows(Context& ctx, const Tensor& x, Tensor q, Tensor scales);

/// y[n, o] = y[n, o] * rows[n] * columns[o] + bias[o], in place.
/// @param y              [N, O], f32; rows may be apart
/// @param rows, columns  [N] and [O], f32
/// @param bias           [O], f32, or absent
void rescale(Context& ctx, Tensor y, const Tensor& rows, const Tensor& columns, const Tensor& bias);

}  // namespace octavo
