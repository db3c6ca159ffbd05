#include "translate/workers.h"

namespace octavo {

Workers::Workers(const Parameters& parameters, const WorkMemory& memory, int count) {
  for (int i = 0; i < count; ++i) {
    contexts_.push_back(std::make_unique<Context>(Device::cpu, 1, memory.scratch));
    arenas_.push_back(std::make_unique<Arena>(memory.activations));
    passes_.push_back({.ctx = *contexts_.back(),
                       .parameters = parameters,
                       .memory = *arenas_.back(),
                       .random = {}});
  }
}

}  // namespace octavo
