#include "core/arena.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "core/error.h"

namespace octavo {

Arena::Arena(std::int64_t capacity) : planning_(false), capacity_(capacity) {
  if (capacity == 0) return;
  void* memory = mmap(nullptr, static_cast<std::size_t>(capacity), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw DeviceError(system_reason(fmt::format("taking {:.2f} GiB of memory for the planned batch",
                                                static_cast<double>(capacity) / (1 << 30)),
                                    errno));
  }
  madvise(memory, static_cast<std::size_t>(capacity),
          MADV_HUGEPAGE);  // a hint: refusal is no fault
  memory_ = static_cast<std::byte*>(memory);
}

Arena::~Arena() {
  if (memory_ != nullptr) munmap(memory_, static_cast<std::size_t>(capacity_));
}

Tensor Arena::allocate(std::initializer_list<std::int64_t> shape, DType type) {
  Tensor t(nullptr, shape, type);
  const std::int64_t begin = used_;
  used_ += (t.bytes() + kAlignment - 1) / kAlignment * kAlignment;
  high_water_ = std::max(high_water_, used_);
  if (planning_) return t;
  if (used_ > capacity_) {
    throw InternalError(fmt::format(
        "the arena holds {} bytes, {} are needed for {}: the plan did not foresee this batch",
        capacity_, used_, t.description()));
  }
  return {memory_ + begin, shape, type};
}

void Arena::release_to(std::int64_t mark) {
  expect(mark <= used_, "Arena::release_to: mark lies above what is used");
  used_ = mark;
}

}  // namespace octavo
