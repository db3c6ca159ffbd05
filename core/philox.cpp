#include "core/philox.h"

#include <numbers>

namespace octavo {

std::uint32_t RandomStream::next() {
  const auto lane = static_cast<std::size_t>(position_ % 4);
  if (lane == 0) {
    const std::uint64_t block = position_ / 4;
    block_ = philox(
        key_, {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0});
  }
  ++position_;
  return block_[lane];
}

double RandomStream::uniform() {
  const std::uint64_t high = next(), low = next();
  return static_cast<double>(((high << 32) | low) >> 11) * 0x1.0p-53;
}

std::uint64_t RandomStream::below(std::uint64_t n) {
  expect(n > 0, "RandomStream::below: n must be positive");
  const std::uint64_t limit = UINT64_MAX - UINT64_MAX % n;
  for (;;) {
    const std::uint64_t high = next(), low = next();
    const std::uint64_t x = (high << 32) | low;
    if (x < limit) return x % n;
  }
}

double RandomStream::normal() {
  const double u = 1.0 - uniform(), v = uniform();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace octavo
