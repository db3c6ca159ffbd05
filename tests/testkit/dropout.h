#pragma once

#include <cstdint>

#include "core/philox.h"

namespace octavo::testkit {

/// What dropout multiplies an element by: 0 or its scale, straight from the contract in
/// core/philox.h.
/// @param plane  0 for rows of activations, 1 + head for attention weights.
inline double dropout_factor(const Dropout& dropout, std::int64_t ordinal, std::int64_t column,
                             std::uint32_t plane = 0) {
  if (!dropout.on()) return 1;
  const auto o = static_cast<std::uint64_t>(ordinal);
  const auto words =
      philox(dropout.key, {static_cast<std::uint32_t>(o), static_cast<std::uint32_t>(o >> 32),
                           static_cast<std::uint32_t>(column / 8), plane});
  const std::uint32_t word = words[static_cast<std::size_t>(column % 8 / 2)];
  const std::uint32_t number = column % 2 == 0 ? word & 0xffff : word >> 16;
  return number < dropout.threshold() ? 0 : dropout.scale();
}

}  // namespace octavo::testkit
