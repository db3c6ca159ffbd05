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

/// philox() of core/philox.h, for K vectors of counters at once: one alone would wait for its own
/// products. MulEven ignores the high halves, so that a round of a vector is two products, two
/// shifts and four xors.
template <class D64, int K, class V = hn::Vec<D64>>
HWY_INLINE void philox_rounds(D64 d64, std::uint64_t key, PhiloxWords<V> (&c)[K]) {
  const hn::Repartition<std::uint32_t, D64> d32;
  const auto m0 = hn::BitCast(d32, hn::Set(d64, 0xD2511F53u));
  const auto m1 = hn::BitCast(d32, hn::Set(d64, 0xCD9E8D57u));
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const auto v0 = hn::Set(d64, std::uint64_t{k0}), v1 = hn::Set(d64, std::uint64_t{k1});
    for (int i = 0; i < K; ++i) {
      const auto p0 = hn::MulEven(hn::BitCast(d32, c[i].w0), m0);
      const auto p1 = hn::MulEven(hn::BitCast(d32, c[i].w2), m1);
      c[i] = {hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), v0), c[i].w1), p1,
              hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), v1), c[i].w3), p0};
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

/// The numbers of K vectors of neighbouring counters of one row, the first of them `counter`.
template <int K>
HWY_INLINE void dropout_vectors(std::uint64_t key, std::uint64_t ordinal, std::int64_t counter,
                                std::uint16_t* out) {
  const hn::ScalableTag<std::uint64_t> d64;
  const hn::Repartition<std::uint32_t, decltype(d64)> d32;
  const hn::Repartition<std::uint16_t, decltype(d64)> d16;
  const std::int64_t L = lanes(d64);
  // Lane 2b takes counter b and lane 2b + 1 counter L / 2 + b, so that interleaving below puts the
  // numbers in the order of memory.
  const auto iota = hn::Iota(d64, 0);
  const auto odd = hn::And(iota, hn::Set(d64, 1));
  const auto order = hn::Add(hn::ShiftRight<1>(iota),
                             hn::IfThenElseZero(hn::Eq(odd, hn::Set(d64, 1)),
                                                hn::Set(d64, static_cast<std::uint64_t>(L / 2))));
  PhiloxWords<hn::Vec<decltype(d64)>> c[K];
  for (int i = 0; i < K; ++i) {
    const auto first = static_cast<std::uint64_t>(counter + i * L);
    c[i] = {hn::Set(d64, ordinal), hn::Set(d64, ordinal >> 32), hn::Add(order, hn::Set(d64, first)),
            hn::Zero(d64)};
  }
  philox_rounds(d64, key, c);
  const auto pair = [&](auto high, auto low) HWY_ATTR {
    return hn::BitCast(
        d64, hn::OddEven(hn::BitCast(d32, hn::ShiftLeft<32>(high)), hn::BitCast(d32, low)));
  };
  for (int i = 0; i < K; ++i, out += L * kColumnsPerCounter) {
    const auto w01 = pair(c[i].w1, c[i].w0), w23 = pair(c[i].w3, c[i].w2);
    hn::StoreU(hn::BitCast(d16, hn::InterleaveLower(d64, w01, w23)), d16, out);
    hn::StoreU(hn::BitCast(d16, hn::InterleaveUpper(d64, w01, w23)), d16, out + L * 4);
  }
}
#endif

/// Writes the 16-bit numbers that decide which elements of a row fall:
///
///     out[c] = number first_counter * 8 + c of the row, for 0 <= c < counters * 8.
///
/// @param key      Dropout::key.
/// @param ordinal  the row's number in the update.
/// @param out      [counters * 8 + kDropoutSlack], overwritten.
HWY_INLINE void dropout_numbers(std::uint64_t key, std::int64_t ordinal, std::int64_t first_counter,
                                std::int64_t counters, std::uint16_t* out) {
  const auto o = static_cast<std::uint64_t>(ordinal);
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t i = 0; i < counters; ++i) {
    const auto words =
        philox(key, {static_cast<std::uint32_t>(o), static_cast<std::uint32_t>(o >> 32),
                     static_cast<std::uint32_t>(first_counter + i), 0});
    for (std::size_t w = 0; w < 4; ++w, out += 2) {
      out[0] = static_cast<std::uint16_t>(words[w]);
      out[1] = static_cast<std::uint16_t>(words[w] >> 16);
    }
  }
#else
  const std::int64_t L = lanes(hn::ScalableTag<std::uint64_t>());
  std::int64_t i = 0;
  for (; i + 3 * L < counters; i += 4 * L) {
    dropout_vectors<4>(key, o, first_counter + i, out + i * kColumnsPerCounter);
  }
  for (; i < counters; i += L) {
    dropout_vectors<1>(key, o, first_counter + i, out + i * kColumnsPerCounter);
  }
#endif
}

/// Applies numbers to values: dropped elements become exactly zero, kept ones are scaled.
template <class D>
class DropoutMask {
 public:
  DropoutMask(D, const Dropout& dropout)
      : last_dropped_(static_cast<std::int32_t>(dropout.threshold()) - 1),
        scale_(static_cast<hn::TFromD<D>>(dropout.scale())) {}

  /// @param numbers  those of v's columns; lanes(d) of them may be read.
  HWY_INLINE hn::Vec<D> apply(D d, hn::Vec<D> v, const std::uint16_t* numbers) const {
    return hn::IfThenElseZero(kept(d, numbers), hn::Mul(v, hn::Set(d, scale_)));
  }

  /// Lanes that stay.
  HWY_INLINE hn::Mask<D> kept(D d, const std::uint16_t* numbers) const {
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::Rebind<std::int32_t, D> d32;
    const auto wide = hn::PromoteTo(d32, hn::LoadU(d16, numbers));
    if constexpr (sizeof(hn::TFromD<D>) == 4) {
      return hn::RebindMask(d, hn::Gt(wide, hn::Set(d32, last_dropped_)));
    } else {
      const hn::Rebind<std::int64_t, D> wider;
      return hn::RebindMask(
          d, hn::Gt(hn::PromoteTo(wider, wide), hn::Set(wider, std::int64_t{last_dropped_})));
    }
  }

 private:
  std::int32_t last_dropped_;  // numbers up to this one drop
  hn::TFromD<D> scale_;
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
    dropout_numbers(key_, ordinal_, begin_ / kColumnsPerCounter, counters, numbers_);
  }

  DropoutMask<D> mask_;
  std::uint64_t key_;
  std::int64_t columns_, ordinal_ = 0, begin_ = 0, end_ = 0;
  HWY_ALIGN std::uint16_t numbers_[kChunk + kDropoutSlack];
};

}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
