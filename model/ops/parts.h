#pragma once

#include <algorithm>
#include <cstdint>

#include "core/parallel.h"
#include "core/tensor.h"

namespace octavo {

/// Cuts some work into parts, at most one per thread, and calls f(part, parts, memory) once for
/// each, memory being that part's row of `scratch` [ctx.threads(), ...].
/// @param work  elements that are loaded and computed with, as for grain_of(): little work is one
///              part.
template <typename F>
void for_parts(const Context& ctx, const Tensor& scratch, std::int64_t work, F&& f) {
  const std::int64_t parts = std::clamp<std::int64_t>(work / grain_of(1), 1, ctx.threads());
  parallel_for(ctx, parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) f(part, parts, scratch.rows(part, 1));
  });
}

}  // namespace octavo
