#pragma once

#include <type_traits>

#include "core/dtype.h"

namespace octavo {

/// The three instantiations of one kernel, as a kernel file exports them for each instruction set.
/// A type that the op's checks refuse may be null.
template <typename Function>
struct PerType {
  Function* f32;
  Function* f64;
  Function* bf16;

  template <typename T>
  Function* get() const {
    if constexpr (std::is_same_v<T, float>) {
      return f32;
    } else if constexpr (std::is_same_v<T, double>) {
      return f64;
    } else {
      static_assert(std::is_same_v<T, bfloat16>, "kernels exist for float, double and bfloat16");
      return bf16;
    }
  }
};

// GCC deduces this by itself; clang 14, and with it clang-tidy, does not.
template <typename Function>
PerType(Function*, Function*, Function*) -> PerType<Function>;

}  // namespace octavo
