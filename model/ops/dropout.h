#pragma once

#include "core/error.h"
#include "core/philox.h"

namespace octavo {

/// @throws InternalError unless `dropout` is off, or drops less than everything and knows the
/// ordinals of `rows` rows.
inline void expect_dropout(const Dropout& dropout, std::int64_t rows) {
  if (!dropout.on()) return;
  expect(dropout.threshold() < 65536, "dropout: a probability that rounds to 1 keeps nothing");
  expect_shape(dropout.ordinals, {rows}, "dropout.ordinals");
  expect_dtype(dropout.ordinals, DType::i64, "dropout.ordinals");
}

}  // namespace octavo
