#include "core/context.h"

#include "core/error.h"

namespace octavo {

Context::Context(Device device, int threads, std::int64_t scratch)
    : device_(device),
      threads_(threads),
      scratch_(device == Device::plan ? std::make_unique<Arena>()
                                      : std::make_unique<Arena>(scratch)) {
  expect(threads >= 1, "Context: needs at least one thread");
}

Context::~Context() = default;

}  // namespace octavo
