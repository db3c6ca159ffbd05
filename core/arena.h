#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "core/dtype.h"
#include "core/tensor.h"

namespace octavo {

/// A stack of memory taken once: tensors are handed out upwards and given back in one jump.
///
/// Made without a capacity it is a plan: it hands out addresses nobody may read and only keeps the
/// high-water mark, which is then the capacity of the real one. Nothing is allocated after the
/// constructor. Alignment of every tensor is kAlignment bytes.
class Arena {
 public:
  static constexpr std::int64_t kAlignment = 64;

  /// A plan: measures, holds nothing.
  Arena() = default;
  /// Takes `capacity` bytes now (zeroed, huge pages where the system offers them).
  /// @throws UserError  the system refuses that much memory.
  explicit Arena(std::int64_t capacity);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  /// @throws InternalError  the plan was too small: a fault of ours, said with both numbers.
  Tensor allocate(std::initializer_list<std::int64_t> shape, DType type);

  std::int64_t used() const { return used_; }
  std::int64_t high_water() const { return high_water_; }
  std::int64_t capacity() const { return capacity_; }
  /// Gives back everything handed out since used() was `mark`.
  void release_to(std::int64_t mark);

 private:
  bool planning_ = true;
  std::byte* memory_ = nullptr;
  std::int64_t capacity_ = 0;
  std::int64_t used_ = 0;
  std::int64_t high_water_ = 0;
};

/// Gives back what was taken from an arena during its life.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.used()) {}
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;
  ~ArenaScope() { arena_.release_to(mark_); }

 private:
  Arena& arena_;
  std::int64_t mark_;
};

}  // namespace octavo
