#pragma once

#include <memory>
#include <span>
#include <vector>

#include "model/layers/pass.h"
#include "translate/work_memory.h"

namespace octavo {

/// Memory and contexts for translating several batches at once, each on a thread of its own: ops on
/// the few rows of a decoding step are too small to be worth sharing between threads.
class Workers {
 public:
  /// @param parameters  must outlive the workers.
  /// @param memory      of each, as BatchTranslator::plan() says for one thread.
  Workers(const Parameters& parameters, const WorkMemory& memory, int count);

  std::span<const Pass> passes() const { return passes_; }

 private:
  std::vector<std::unique_ptr<Context>> contexts_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::vector<Pass> passes_;
};

}  // namespace octavo
