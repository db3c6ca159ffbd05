#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "core/tensor.h"

namespace octavo {

/// Philox4x32-10: four random words from a 64-bit key and a 128-bit counter.
/// Source: Salmon, Moraes, Dror, Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3".
constexpr std::array<std::uint32_t, 4> philox(std::uint64_t key, std::array<std::uint32_t, 4> c) {
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

/// Mixes (seed, a, b) into one key or seed: the finaliser of SplitMix64 over each word in turn.
constexpr std::uint64_t mix(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0) {
  const auto finalise = [](std::uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  };
  return finalise(finalise(finalise(seed) ^ a) ^ b);
}

/// A stream of random numbers with logical position, for host code (shuffling, initialisation).
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t key) : key_(key) {}
  std::uint32_t next();
  /// Uniform in [0, 1) with 53 bits.
  double uniform();
  /// Uniform in [0, n), n > 0, without modulo bias.
  std::uint64_t below(std::uint64_t n);
  /// Standard normal (Box-Muller).
  double normal();

 private:
  std::uint64_t key_;
  std::uint64_t position_ = 0;
  std::array<std::uint32_t, 4> block_{};
};

/// One dropout site of one update. Which elements fall is a pure function of (key, the row's
/// ordinal in the update, column): the same for any device and any cut into micro-batches.
///
/// Row with ordinal o, column c: word = philox(key, {o low, o high, c / 8, 0}), taken as eight
/// 16-bit numbers, low half first; number c % 8 below threshold() drops the element. What is kept
/// is multiplied by scale(), the exact inverse of the probability that 16 bits can express.
/// Attention weights use the query's ordinal and {o low, o high, key position / 8, 1 + head}.
struct Dropout {
  double probability = 0;  ///< 0: off; else below 1
  std::uint64_t key = 0;   ///< mix(seed, update, site)
  Tensor ordinals;         ///< i64 [rows], absent when off

  bool on() const { return probability > 0; }
  std::uint32_t threshold() const {
    return static_cast<std::uint32_t>(std::lround(probability * 65536.0));
  }
  double scale() const { return 65536.0 / (65536.0 - threshold()); }
};

}  // namespace octavo
