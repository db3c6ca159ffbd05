#pragma once

#include <fmt/format.h>

#include "core/context.h"
#include "core/dtype.h"
#include "core/error.h"

namespace octavo {

/// Tags that choose an op's overload.
struct OnCpu {};
struct OnCuda {};

/// Calls f.template operator()<T>(OnCpu{} or OnCuda{}) for the context's device and element type.
/// On a plan nothing is called: the op has recorded its cost and is done.
/// @throws InternalError  this build has no kernel for the pair.
template <typename F>
void dispatch(Context& ctx, DType type, F&& f) {
  if (ctx.device() == Device::plan) return;
  if (ctx.device() == Device::cpu) {
    switch (type) {
      case DType::f32:
        return f.template operator()<float>(OnCpu{});
      case DType::f64:
        return f.template operator()<double>(OnCpu{});
      case DType::bf16:
        return f.template operator()<bfloat16>(OnCpu{});
      default:
        break;
    }
  }
#ifdef OCTAVO_CUDA
  if (ctx.device() == Device::cuda) {
    switch (type) {
      case DType::f32:
        return f.template operator()<float>(OnCuda{});
      case DType::bf16:
        return f.template operator()<bfloat16>(OnCuda{});
      default:
        break;
    }
  }
#endif
  throw InternalError(fmt::format("no kernel for element type {} on this device", name_of(type)));
}

}  // namespace octavo
