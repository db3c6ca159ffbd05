#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/ops/transpose_cpu.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "model/ops/simd-inl.h"
#include "model/ops/transpose_cpu.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {
namespace {

template <typename T>
HWY_INLINE void plain_block(const T* from, std::int64_t rows, std::int64_t columns,
                            std::int64_t from_stride, T* to, std::int64_t to_stride) {
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) to[c * to_stride + r] = from[r * from_stride + c];
  }
}

#if HWY_TARGET != HWY_SCALAR
// Vectors of 16 bytes on every instruction set: what limits a transposition is memory.
using D16 = hn::CappedTag<std::uint16_t, 8>;
using D32 = hn::CappedTag<std::uint32_t, 4>;
using D64 = hn::CappedTag<std::uint64_t, 2>;

// 4 x 4 words. Each step pairs rows, then pairs of rows.
HWY_INLINE void square(const std::uint32_t* from, std::int64_t from_stride, std::uint32_t* to,
                       std::int64_t to_stride) {
  const D32 d;
  const D64 d64;
  const auto wide = [&](auto v) HWY_ATTR { return hn::BitCast(d64, v); };
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + from_stride);
  const auto r2 = hn::LoadU(d, from + 2 * from_stride), r3 = hn::LoadU(d, from + 3 * from_stride);
  const auto low01 = wide(hn::InterleaveLower(d, r0, r1));
  const auto high01 = wide(hn::InterleaveUpper(d, r0, r1));
  const auto low23 = wide(hn::InterleaveLower(d, r2, r3));
  const auto high23 = wide(hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, low01, low23)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, high01, high23)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, high01, high23)), d, to + 3 * to_stride);
}

// 8 x 8 halves: pairs of rows make a 4 x 8 matrix of words, which is two squares of words.
HWY_INLINE void square(const std::uint16_t* from, std::int64_t from_stride, std::uint16_t* to,
                       std::int64_t to_stride) {
  const D16 d;
  const D32 d32;
  const D64 d64;
  const auto pair = [&](std::int64_t r, auto interleave) HWY_ATTR {
    return hn::BitCast(d32, interleave(hn::LoadU(d, from + r * from_stride),
                                       hn::LoadU(d, from + (r + 1) * from_stride)));
  };
  // Columns 0 to 3, then 4 to 7, as words of two rows.
  const auto half = [&](auto interleave, std::uint16_t* out) HWY_ATTR {
    const auto p0 = pair(0, interleave), p1 = pair(2, interleave);
    const auto p2 = pair(4, interleave), p3 = pair(6, interleave);
    const auto wide = [&](auto v) HWY_ATTR { return hn::BitCast(d64, v); };
    const auto low01 = wide(hn::InterleaveLower(d32, p0, p1));
    const auto high01 = wide(hn::InterleaveUpper(d32, p0, p1));
    const auto low23 = wide(hn::InterleaveLower(d32, p2, p3));
    const auto high23 = wide(hn::InterleaveUpper(d32, p2, p3));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, low01, low23)), d, out);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, low01, low23)), d, out + to_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, high01, high23)), d, out + 2 * to_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, high01, high23)), d, out + 3 * to_stride);
  };
  half([&](auto a, auto b) HWY_ATTR { return hn::InterleaveLower(d, a, b); }, to);
  half([&](auto a, auto b) HWY_ATTR { return hn::InterleaveUpper(d, a, b); }, to + 4 * to_stride);
}
#endif

template <typename T>
HWY_INLINE void transpose_words(const Transpose& t) {
  const auto* from = static_cast<const T*>(t.from);
  auto* to = static_cast<T*>(t.to);
  std::int64_t done_rows = 0, done_columns = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr std::int64_t kSide = 16 / sizeof(T);   // of a square
  constexpr std::int64_t kStrip = 64 / sizeof(T);  // a cache line of columns at a time
  done_rows = t.rows / kSide * kSide;
  done_columns = t.columns / kSide * kSide;
  for (std::int64_t strip = 0; strip < done_columns; strip += kStrip) {
    const std::int64_t end = HWY_MIN(done_columns, strip + kStrip);
    for (std::int64_t r = 0; r < done_rows; r += kSide) {
      for (std::int64_t c = strip; c < end; c += kSide) {
        square(from + r * t.from_stride + c, t.from_stride, to + c * t.to_stride + r, t.to_stride);
      }
    }
  }
#endif
  // What squares left over: columns to the right, then rows below.
  plain_block(from + done_columns, done_rows, t.columns - done_columns, t.from_stride,
              to + done_columns * t.to_stride, t.to_stride);
  plain_block(from + done_rows * t.from_stride, t.rows - done_rows, t.columns, t.from_stride,
              to + done_rows, t.to_stride);
}

void transpose_any(const Transpose& t) {
  if (t.type == DType::bf16) {
    transpose_words<std::uint16_t>(t);
  } else {
    transpose_words<std::uint32_t>(t);
  }
}

}  // namespace
}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "core/error.h"

namespace octavo {
namespace {

HWY_EXPORT(transpose_any);

}  // namespace

void transpose(const Transpose& t) {
  expect(t.type == DType::bf16 || t.type == DType::f32, "transpose: bf16 and f32 only");
  HWY_DYNAMIC_DISPATCH(transpose_any)(t);
}

}  // namespace octavo
#endif  // HWY_ONCE
