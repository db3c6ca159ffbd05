// Dropout masks in vectors: the numbers of core/philox.h's Dropout, bit for bit, on every
// instruction set. Included after simd-inl.h's example.

#if defined(OCTAVO_MODEL_OPS_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_MODEL_OPS_DROPOUT_INL_H_
#undef OCTAVO_MODEL_OPS_DROPOUT_INL_H_
#else
#define OCTAVO_MODEL_OPS_DROPOUT_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "core/philox.h"
#include "model/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {

/// Columns that share one Philox counter: eight 16-bit numbers of 128 bits.
inline constexpr std::int64_t kColumnsPerCounter = 8;
/// dropout_numbers() writes whole vectors: this many numbers more than asked for, at most.
inline constexpr std::int64_t kDropoutSlack = 64;

#if HWY_TARGET != HWY_SCALAR
/// The four words of a Philox counter or of its result, for one counter per 64-bit lane: each word
/// in the low half of a lane, rubbish in the high half.
template <class V>
struct PhiloxWords {
  V w0, w1, w2, w3;
};

/// philox() of core/philox.h. MulEven ignores the high halves, so that a round of eight counters is
/// two products, two shifts and four xors.
template <class D64, class V = hn::Vec<D64>>
HWY_INLINE PhiloxWords<V> philox_rounds(D64 d64, std::uint64_t key, PhiloxWords<V> c) {
  const hn::Repartition<std::uint32_t, D64> d32;
  const auto m0 = hn::BitCast(d32, hn::Set(d64, 0xD2511F53u));
  const auto m1 = hn::BitCast(d32, hn::Set(d64, 0xCD9E8D57u));
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const auto p0 = hn::MulEven(hn::BitCast(d32, c.w0), m0);
    const auto p1 = hn::MulEven(hn::BitCast(d32, c.w2), m1);
    c = {hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), hn::Set(d64, std::uint64_t{k0})), c.w1), p1,
         hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), hn::Set(d64, std::uint64_t{k1})), c.w3), p0};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}
#endif

/// Writes the 16-bit numbers that decide which elements fall, for a block of rows:
///
///     out[r * counters * 8 + c] = number (first_counter * 8 + c) of the row with ordinals[r]
///
/// for 0 <= r < rows and 0 <= c < counters * 8. One counter serves eight columns.
///
/// @param key      Dropout::key.
/// @param ordinals [rows], the rows' numbers in the update.
/// @param plane    fourth word of the counter: 0 for rows of activations, 1 + head for weights.
/// @param out      [rows * counters * 8 + kDropoutSlack], overwritten.
HWY_INLINE void dropout_numbers(std::uint64_t key, const std::int64_t* ordinals, std::int64_t rows,
                                std::int64_t first_counter, std::int64_t counters,
                                std::uint32_t plane, std::uint16_t* out) {
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t i = 0; i < rows * counters; ++i) {
    const auto ordinal = static_cast<std::uint64_t>(ordinals[i / counters]);
    const auto words =
        philox(key, {static_cast<std::uint32_t>(ordinal), static_cast<std::uint32_t>(ordinal >> 32),
                     static_cast<std::uint32_t>(first_counter + i % counters), plane});
    for (std::int64_t w = 0; w < 4; ++w) {
      out[i * 8 + 2 * w] = static_cast<std::uint16_t>(words[static_cast<std::size_t>(w)]);
      out[i * 8 + 2 * w + 1] = static_cast<std::uint16_t>(words[static_cast<std::size_t>(w)] >> 16);
    }
  }
#else
  const hn::ScalableTag<std::uint64_t> d64;
  const hn::Repartition<std::uint32_t, decltype(d64)> d32;
  const hn::Repartition<std::uint16_t, decltype(d64)> d16;
  const std::int64_t L = lanes(d64);
  HWY_ALIGN std::uint64_t low[hn::MaxLanes(d64)];
  HWY_ALIGN std::uint64_t high[hn::MaxLanes(d64)];
  HWY_ALIGN std::uint64_t column[hn::MaxLanes(d64)];
  const std::int64_t total = rows * counters;
  std::int64_t row = 0, counter = 0;
  for (std::int64_t i = 0; i < total; i += L) {
    // Lane 2b takes counter b and lane 2b + 1 counter L / 2 + b, so that interleaving below puts
    // the numbers in the order of memory.
    for (std::int64_t j = 0; j < L; ++j) {
      const auto ordinal = static_cast<std::uint64_t>(ordinals[row]);
      const std::int64_t lane = j < L / 2 ? 2 * j : 2 * (j - L / 2) + 1;
      low[lane] = ordinal;
      high[lane] = ordinal >> 32;
      column[lane] = static_cast<std::uint64_t>(first_counter + counter);
      if (++counter == counters) {
        counter = 0;
        row = std::min(row + 1, rows - 1);  // lanes beyond the last counter: any numbers will do
      }
    }
    const auto c = philox_rounds(d64, key,
                                 PhiloxWords<hn::Vec<decltype(d64)>>{
                                     hn::Load(d64, low), hn::Load(d64, high), hn::Load(d64, column),
                                     hn::Set(d64, std::uint64_t{plane})});
    const auto pair = [&](auto odd, auto even) HWY_ATTR {
      return hn::BitCast(
          d64, hn::OddEven(hn::BitCast(d32, hn::ShiftLeft<32>(odd)), hn::BitCast(d32, even)));
    };
    const auto w01 = pair(c.w1, c.w0), w23 = pair(c.w3, c.w2);
    hn::StoreU(hn::BitCast(d16, hn::InterleaveLower(d64, w01, w23)), d16, out + i * 8);
    hn::StoreU(hn::BitCast(d16, hn::InterleaveUpper(d64, w01, w23)), d16, out + i * 8 + L * 4);
  }
#endif
}

/// Applies numbers to values: dropped elements become exactly zero, kept ones are scaled.
template <class D>
class DropoutMask {
 public:
  DropoutMask(D, const Dropout& dropout)
      : threshold_(static_cast<std::int32_t>(dropout.threshold())), scale_(dropout.scale()) {}

  /// @param numbers  those of v's columns; lanes(d) of them may be read.
  HWY_INLINE hn::Vec<D> apply(D d, hn::Vec<D> v, const std::uint16_t* numbers) const {
    return hn::IfThenElseZero(kept(d, numbers), hn::Mul(v, broadcast(d, scale_)));
  }

  /// Lanes that stay.
  HWY_INLINE hn::Mask<D> kept(D d, const std::uint16_t* numbers) const {
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::Rebind<std::int32_t, D> d32;
    const auto wide = hn::PromoteTo(d32, hn::LoadU(d16, numbers));
    if constexpr (sizeof(hn::TFromD<D>) == 4) {
      return hn::RebindMask(d, hn::Gt(wide, hn::Set(d32, threshold_ - 1)));
    } else {
      const hn::Rebind<std::int64_t, D> wider;
      return hn::RebindMask(
          d, hn::Gt(hn::PromoteTo(wider, wide), hn::Set(wider, std::int64_t{threshold_} - 1)));
    }
  }

 private:
  std::int32_t threshold_;
  double scale_;
};

/// The mask of one row, made in chunks that stay in the first cache. apply() must be called with
/// columns from left to right.
///
///     DropoutRow<D> mask(d, in.dropout);
///     mask.start(ordinal);
///     for_vectors(d, D, [&](std::int64_t c, auto part) HWY_ATTR {
///       store(d, mask.apply(d, load(d, x + c, part), c), y + c, part);
///     });
template <class D>
class DropoutRow {
 public:
  /// @param columns  width of a row: no more numbers than it needs are made.
  DropoutRow(D d, const Dropout& dropout, std::int64_t columns)
      : mask_(d, dropout), key_(dropout.key), columns_(columns) {}

  void start(std::int64_t ordinal) {
    ordinal_ = ordinal;
    end_ = 0;
  }
  HWY_INLINE hn::Vec<D> apply(D d, hn::Vec<D> v, std::int64_t column) {
    if (column >= end_) refill(column);
    return mask_.apply(d, v, numbers_ + (column - begin_));
  }

 private:
  static constexpr std::int64_t kChunk = 512;  // columns; a multiple of every vector's lanes
  void refill(std::int64_t column) {
    begin_ = column;
    end_ = std::min(column + kChunk, columns_);
    const std::int64_t counters = (end_ - begin_ + kColumnsPerCounter - 1) / kColumnsPerCounter;
    dropout_numbers(key_, &ordinal_, 1, begin_ / kColumnsPerCounter, counters, 0, numbers_);
  }

  DropoutMask<D> mask_;
  std::uint64_t key_;
  std::int64_t columns_, ordinal_ = 0, begin_ = 0, end_ = 0;
  HWY_ALIGN std::uint16_t numbers_[kChunk + kDropoutSlack];
};

}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
