#pragma once

#include "core/parallel.h"
#include "core/tensor.h"

namespace octavo {

/// Calls f(part, parts, memory) once for every part of some work, parts being ctx.threads() and
/// memory that part's row of `scratch` [parts, ...]. Ops that need scratch cut their work so.
template <typename F>
void for_parts(const Context& ctx, const Tensor& scratch, F&& f) {
  const std::int64_t parts = ctx.threads();
  parallel_for(ctx, parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) f(part, parts, scratch.rows(part, 1));
  });
}

}  // namespace octavo
