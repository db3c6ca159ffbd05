#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/arena.h"
#include "core/context.h"
#include "core/philox.h"
#include "model/parameters.h"

namespace octavo {

/// Dropout of one update: hands every site its own key. Off when not training.
struct StepRandom {
  bool training = false;
  std::uint64_t seed = 0;
  std::uint64_t update = 0;

  /// @param site      numbers the place in the model; each place has its own.
  /// @param ordinals  of the rows, i64.
  Dropout at(int site, double probability, const Tensor& ordinals) const {
    if (!training || probability == 0) return {};
    return {probability, mix(seed, update, static_cast<std::uint64_t>(site)), ordinals};
  }
};

/// Is shown the weights of every attention that forward computes.
/// @param name     of the layer, e.g. "decoder.layers.0.cross_attention".
/// @param weights  [tokens, heads, longest sentence of keys], statistics type, before dropout; zero
///                 beyond a sentence. They live until the call returns.
using AttentionListener = std::function<void(const std::string& name, const Tensor& weights)>;

/// What a layer needs beside its data, in forward and in backward.
struct Pass {
  Context& ctx;
  const Parameters& parameters;
  Arena& memory;  ///< activations: what forward saves until backward
  StepRandom random;
  const AttentionListener* attention = nullptr;  ///< null: nobody looks at weights

  Tensor allocate(std::initializer_list<std::int64_t> shape) const {
    return memory.allocate(shape, parameters.compute_type());
  }
  Tensor allocate_statistics(std::initializer_list<std::int64_t> shape) const {
    return memory.allocate(shape, statistics_type(parameters.compute_type()));
  }
  /// From the scratch stack: lives until the caller's ArenaScope ends.
  Tensor scratch(std::initializer_list<std::int64_t> shape) const {
    return ctx.scratch().allocate(shape, parameters.compute_type());
  }
};

/// Called in backward when every gradient of a parameter group has received its last addition.
using GroupDone = std::function<void(int group)>;

}  // namespace octavo
