// Dropout of attention weights in vectors that hold one query per lane.

#if defined(OCTAVO_MODEL_OPS_ATTENTION_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OCTAVO_MODEL_OPS_ATTENTION_DROPOUT_INL_H_
#undef OCTAVO_MODEL_OPS_ATTENTION_DROPOUT_INL_H_
#else
#define OCTAVO_MODEL_OPS_ATTENTION_DROPOUT_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "model/ops/dropout-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {

/// The numbers that decide which weights fall: Dropout's, with one query per lane.
template <class D>
class TileDropout {
 public:
  /// @param ordinals  of the tile's queries, at most two vectors of them.
  TileDropout(D d, const Dropout& dropout, std::int64_t head, const std::int64_t* ordinals,
              std::int64_t queries)
      : key_(dropout.key),
        plane_(static_cast<std::uint32_t>(1 + head)),
        threshold_(static_cast<std::int32_t>(dropout.threshold())) {
    for (std::int64_t i = 0; i < 2 * lanes(d); ++i) {
      const auto ordinal = static_cast<std::uint64_t>(ordinals[std::min(i, queries - 1)]);
      low_[i] = static_cast<Word>(ordinal & 0xffffffffu);
      high_[i] = static_cast<Word>(ordinal >> 32);
    }
  }

  /// Calls f(key, kept) for every key in [0, keys), for the queries of the vector at `lane`.
  template <typename F>
  HWY_INLINE void for_keys(D d, std::int64_t lane, std::int64_t keys, F f) const {
    for (std::int64_t k = 0; k < keys; k += kColumnsPerCounter) {
      Words w = words(lane, static_cast<std::uint32_t>(k / kColumnsPerCounter));
      for (std::int64_t i = k; i < std::min(keys, k + kColumnsPerCounter); i += 2) {
        f(i, kept(d, lower_half(w.w[0])));
        if (i + 1 < keys) f(i + 1, kept(d, upper_half(w.w[0])));
        w = {{w.w[1], w.w[2], w.w[3], w.w[0]}};
      }
    }
  }

 private:
  // One unsigned lane per query, as wide as the compute type; 32 bits of it count.
  using Word = hwy::MakeUnsigned<hn::TFromD<D>>;
  using DW = hn::Rebind<Word, D>;
  struct Words {
    hn::Vec<DW> w[4];
  };
#if HWY_TARGET == HWY_SCALAR
  HWY_INLINE Words words(std::int64_t lane, std::uint32_t counter) const {
    const auto w = philox(key_, {static_cast<std::uint32_t>(low_[lane]),
                                 static_cast<std::uint32_t>(high_[lane]), counter, plane_});
    const DW dw;
    return {{hn::Set(dw, w[0]), hn::Set(dw, w[1]), hn::Set(dw, w[2]), hn::Set(dw, w[3])}};
  }
#else
  HWY_INLINE Words words(std::int64_t lane, std::uint32_t counter) const {
    const DW dw;
    const hn::Repartition<std::uint64_t, DW> d64;
    using Four = PhiloxWords<hn::Vec<decltype(d64)>>;
    const auto low = hn::BitCast(d64, hn::LoadU(dw, low_ + lane));
    const auto high = hn::BitCast(d64, hn::LoadU(dw, high_ + lane));
    const auto c2 = hn::Set(d64, std::uint64_t{counter});
    const auto c3 = hn::Set(d64, std::uint64_t{plane_});
    if constexpr (sizeof(Word) == 8) {
      Four c[1] = {{low, high, c2, c3}};
      philox_rounds(d64, key_, c);
      return {{c[0].w0, c[0].w1, c[0].w2, c[0].w3}};
    } else {  // two queries share 64 bits: those in the high halves take rounds of their own
      Four c[2] = {{low, high, c2, c3},
                   {hn::ShiftRight<32>(low), hn::ShiftRight<32>(high), c2, c3}};
      philox_rounds(d64, key_, c);
      const auto& [even, odd] = c;
      const auto both = [&](auto o, auto e) HWY_ATTR {
        return hn::OddEven(hn::BitCast(dw, hn::ShiftLeft<32>(o)), hn::BitCast(dw, e));
      };
      return {{both(odd.w0, even.w0), both(odd.w1, even.w1), both(odd.w2, even.w2),
               both(odd.w3, even.w3)}};
    }
  }
#endif

  static HWY_INLINE hn::Vec<DW> lower_half(hn::Vec<DW> word) {
    return hn::And(word, hn::Set(DW(), 0xffff));
  }
  static HWY_INLINE hn::Vec<DW> upper_half(hn::Vec<DW> word) {
    return lower_half(hn::ShiftRight<16>(word));
  }
  HWY_INLINE hn::Mask<D> kept(D d, hn::Vec<DW> number) const {
    const hn::Rebind<hwy::MakeSigned<Word>, D> di;
    return hn::RebindMask(d, hn::Gt(hn::BitCast(di, number), hn::Set(di, threshold_ - 1)));
  }

  std::uint64_t key_;
  std::uint32_t plane_;
  std::int32_t threshold_;
  HWY_ALIGN Word low_[2 * hn::MaxLanes(D())];
  HWY_ALIGN Word high_[2 * hn::MaxLanes(D())];
};

}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
