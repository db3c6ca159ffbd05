#pragma once

#include "core/context.h"
#include "core/tensor.h"

namespace octavo {

/// Rows that are summed by one thread before partial sums are added up. Fixed, so that the result
/// does not depend on the number of threads; small, so that float32 sums stay short.
inline constexpr std::int64_t kRowsPerSum = 32;

constexpr std::int64_t sum_blocks(std::int64_t rows) {
  return (rows + kRowsPerSum - 1) / kRowsPerSum;
}

/// sums[o] += sum over n of x[n, o], in blocks of kRowsPerSum rows.
///
/// @param x     [N, O], compute type; rows may be apart.
/// @param sums  [O], statistics type, added to.
void add_column_sums(Context& ctx, const Tensor& x, Tensor sums);

/// The second half of such a sum, for ops that make the partial sums themselves:
/// sums[d] += sum over b of partials[b, d], in order.
///
/// @param partials  [blocks, D], statistics type; rows may be apart.
/// @param sums      [D], statistics type, added to.
void add_partial_sums(Context& ctx, const Tensor& partials, Tensor sums);

}  // namespace octavo
