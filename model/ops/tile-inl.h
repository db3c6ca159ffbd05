// Small matrix products and copies for kernels that keep a whole problem in cache (attention).
// Operands lie on a thread's scratch in the compute type, each row starting a whole number of
// vectors after the one before, so that no product needs a mask.

#if defined(OCTAVO_MODEL_OPS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_MODEL_OPS_TILE_INL_H_
#undef OCTAVO_MODEL_OPS_TILE_INL_H_
#else
#define OCTAVO_MODEL_OPS_TILE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "model/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {

// Rows of accumulators held in registers, two vectors each: 16 of 32 registers from AVX-512 on,
// 12 of 16 before. At least 8 sums are needed to hide the latency of two multiply-adds per cycle.
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
inline constexpr int kTileRows = 6;
#else
inline constexpr int kTileRows = 8;
#endif

/// What a product on or below a diagonal need not touch, in blocks of rows.
enum class Skip : std::uint8_t {
  nothing,
  columns_before,  ///< c[m, n] is wanted for n >= m - diagonal only
  depth_before,    ///< a[m, k] is zero for k < m - diagonal
  depth_after,     ///< a[m, k] is zero for k > m + diagonal
};

/// c[m, n] (+)= sum over k of a[m, k] * b[k, n].
template <typename C>
struct TileProduct {
  const C* a;            ///< a[m * a_pitch + k], or a[k * a_pitch + m] if a is transposed
  std::int64_t a_pitch;  ///< elements
  const C* b;
  std::int64_t b_pitch;
  C* c;
  std::int64_t c_pitch;
  std::int64_t rows, vectors, depth;  ///< extents of m, of n in whole vectors, and of k
  bool add = false;                   ///< add to c instead of overwriting it
  Skip skip = Skip::nothing;
  std::int64_t diagonal = 0;
};

/// kRows rows and kVectors vectors of c over k in [k_begin, k_end), in registers.
template <int kRows, int kVectors, bool kTransposed, typename C>
HWY_INLINE void tile_block(const TileProduct<C>& p, std::int64_t m, std::int64_t vector,
                           std::int64_t k_begin, std::int64_t k_end) {
  const hn::ScalableTag<C> d;
  const std::int64_t L = lanes(d), a_pitch = p.a_pitch, b_pitch = p.b_pitch, c_pitch = p.c_pitch;
  C* HWY_RESTRICT c = p.c + m * c_pitch + vector * L;
  const C* HWY_RESTRICT b = p.b + vector * L + k_begin * b_pitch;
  const C* HWY_RESTRICT a = kTransposed ? p.a + k_begin * a_pitch + m : p.a + m * a_pitch + k_begin;
  hn::Vec<decltype(d)> sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = p.add ? hn::LoadU(d, c + r * c_pitch + v * L) : hn::Zero(d);
    }
  }
  for (std::int64_t k = k_begin; k < k_end; ++k) {
    hn::Vec<decltype(d)> row[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) row[v] = hn::LoadU(d, b + v * L);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto factor = hn::Set(d, a[kTransposed ? r : r * a_pitch]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(factor, row[v], sum[r][v]);
    }
    a += kTransposed ? a_pitch : 1;
    b += b_pitch;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[r][v], d, c + r * c_pitch + v * L);
  }
}

/// All vectors of `kRows` rows from m on.
template <int kRows, bool kTransposed, typename C>
HWY_NOINLINE void tile_row_block(const TileProduct<C>& p, std::int64_t m) {
  const std::int64_t L = lanes(hn::ScalableTag<C>());
  std::int64_t vector = 0, k_begin = 0, k_end = p.depth;
  if (p.skip == Skip::columns_before) vector = std::max<std::int64_t>(0, m - p.diagonal) / L;
  if (p.skip == Skip::depth_before) k_begin = std::clamp<std::int64_t>(m - p.diagonal, 0, k_end);
  if (p.skip == Skip::depth_after) k_end = std::min(k_end, m + kRows + p.diagonal);
  for (; vector + 2 <= p.vectors; vector += 2) {
    tile_block<kRows, 2, kTransposed>(p, m, vector, k_begin, k_end);
  }
  if (vector < p.vectors) tile_block<kRows, 1, kTransposed>(p, m, vector, k_begin, k_end);
}

/// tile_row_block() of `rows` rows, 1 to kRows.
template <int kRows, bool kTransposed, typename C>
HWY_INLINE void tile_rows(const TileProduct<C>& p, std::int64_t m, std::int64_t rows) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return tile_rows<kRows - 1, kTransposed>(p, m, rows);
  }
  tile_row_block<kRows, kTransposed>(p, m);
}

/// Computes the product in blocks of nearly equal height, so that no thin block remains.
template <bool kTransposed, typename C>
HWY_INLINE void multiply_tile(const TileProduct<C>& p) {
  const std::int64_t blocks = (p.rows + kTileRows - 1) / kTileRows;
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::int64_t m = p.rows * i / blocks, end = p.rows * (i + 1) / blocks;
    tile_rows<kTileRows, kTransposed>(p, m, end - m);
  }
}

/// to[r * pitch + c] = from[r * stride + c], in the compute type; whole vectors are written, zero
/// beyond `columns`.
template <typename T, typename C>
HWY_INLINE void pack_rows(const T* HWY_RESTRICT from, std::int64_t stride, std::int64_t rows,
                          std::int64_t columns, C* HWY_RESTRICT to, std::int64_t pitch) {
  const hn::ScalableTag<C> d;
  for (std::int64_t r = 0; r < rows; ++r, from += stride, to += pitch) {
    for_vectors(d, columns, [&](std::int64_t c, auto part) HWY_ATTR {
      hn::StoreU(load(d, from + c, part), d, to + c);
    });
  }
}

/// to[r * stride + c] = factor[r] * from[r * pitch + c], rounded to T.
template <typename T, typename C>
HWY_INLINE void unpack_rows(const C* HWY_RESTRICT from, std::int64_t pitch, std::int64_t rows,
                            std::int64_t columns, const C* HWY_RESTRICT factor, T* HWY_RESTRICT to,
                            std::int64_t stride) {
  const hn::ScalableTag<C> d;
  for (std::int64_t r = 0; r < rows; ++r, from += pitch, to += stride) {
    const auto f = hn::Set(d, factor[r]);
    for_vectors(d, columns, [&](std::int64_t c, auto part) HWY_ATTR {
      store(d, hn::Mul(f, hn::LoadU(d, from + c)), to + c, part);
    });
  }
}
/// The same without a factor.
template <typename T, typename C>
HWY_INLINE void unpack_rows(const C* HWY_RESTRICT from, std::int64_t pitch, std::int64_t rows,
                            std::int64_t columns, T* HWY_RESTRICT to, std::int64_t stride) {
  const hn::ScalableTag<C> d;
  for (std::int64_t r = 0; r < rows; ++r, from += pitch, to += stride) {
    for_vectors(d, columns, [&](std::int64_t c, auto part) HWY_ATTR {
      store(d, hn::LoadU(d, from + c), to + c, part);
    });
  }
}

template <typename C>
HWY_INLINE void zero_vectors(C* HWY_RESTRICT to, std::int64_t n) {
  const hn::ScalableTag<C> d;
  for (std::int64_t i = 0; i < n; i += lanes(d)) hn::StoreU(hn::Zero(d), d, to + i);
}

/// to[c * to_pitch + r] = scale * from[r * from_pitch + c] for r < rows, c < columns. Rows and
/// columns are rounded up to 4: those elements of `from` are read and of `to` written.
template <typename C>
HWY_INLINE void transpose(const C* HWY_RESTRICT from, std::int64_t from_pitch, std::int64_t rows,
                          std::int64_t columns, C scale, C* HWY_RESTRICT to,
                          std::int64_t to_pitch) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(C) == 4) {
    const hn::Full128<C> d;
    const hn::Full128<double> pairs;
    const auto s = hn::Set(d, scale);
    const auto lower = [&](auto x, auto y) HWY_ATTR {
      return hn::BitCast(d,
                         hn::InterleaveLower(pairs, hn::BitCast(pairs, x), hn::BitCast(pairs, y)));
    };
    const auto upper = [&](auto x, auto y) HWY_ATTR {
      return hn::BitCast(d,
                         hn::InterleaveUpper(pairs, hn::BitCast(pairs, x), hn::BitCast(pairs, y)));
    };
    for (std::int64_t r = 0; r < rows; r += 4) {
      for (std::int64_t c = 0; c < columns; c += 4) {
        const C* HWY_RESTRICT f = from + r * from_pitch + c;
        const auto v0 = hn::Mul(s, hn::LoadU(d, f)), v1 = hn::Mul(s, hn::LoadU(d, f + from_pitch));
        const auto v2 = hn::Mul(s, hn::LoadU(d, f + 2 * from_pitch));
        const auto v3 = hn::Mul(s, hn::LoadU(d, f + 3 * from_pitch));
        const auto v01_lower = hn::InterleaveLower(d, v0, v1);
        const auto v01_upper = hn::InterleaveUpper(d, v0, v1);
        const auto v23_lower = hn::InterleaveLower(d, v2, v3);
        const auto v23_upper = hn::InterleaveUpper(d, v2, v3);
        C* HWY_RESTRICT t = to + c * to_pitch + r;
        hn::StoreU(lower(v01_lower, v23_lower), d, t);
        hn::StoreU(upper(v01_lower, v23_lower), d, t + to_pitch);
        hn::StoreU(lower(v01_upper, v23_upper), d, t + 2 * to_pitch);
        hn::StoreU(upper(v01_upper, v23_upper), d, t + 3 * to_pitch);
      }
    }
    return;
  }
#endif
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c)
      to[c * to_pitch + r] = scale * from[r * from_pitch + c];
  }
}

}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
