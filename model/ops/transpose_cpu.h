#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace octavo {

/// to[c, r] = from[r, c] for a [rows, columns] matrix of float32 or bf16, on the calling thread.
struct Transpose {
  DType type;
  const void* from;
  std::int64_t rows, columns;
  std::int64_t from_stride;  ///< elements between rows of `from`
  void* to;
  std::int64_t to_stride;  ///< elements between rows of `to`
};
void transpose(const Transpose& t);

}  // namespace octavo
