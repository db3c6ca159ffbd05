#pragma once

#include "core/tensor.h"

namespace octavo {

/// What embedding_backward is made of: sums[keys[n]] += scale * masked dy[n], token by token.
struct KeyedSum {
  Tensor keys;   ///< i32 [rows]: pieces or positions
  double scale;  ///< of what is added
  Tensor sums;   ///< [K, D], statistics type
  Tensor first;  ///< i32 [K + 1], scratch: tokens of key k are order[first[k]] to
                 ///< order[first[k + 1] - 1], rising
  Tensor order;  ///< i32 [tokens], scratch
};

}  // namespace octavo
