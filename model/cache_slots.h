#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor.h"

// R = hypotheses alive.
namespace octavo {

/// Which rows of a cache hold what each hypothesis has seen.
///
/// A token is written into a slot of its own and stays there; the hypotheses that continue it share
/// the slot, and when none of them lives any more it is used again. So a cache stays about as small
/// as what beams differ in, and what is read lies close together.
class CacheSlots {
 public:
  /// @param max_rows  hypotheses alive at once. @param max_steps  tokens of the longest.
  CacheSlots(std::int64_t max_rows, std::int64_t max_steps);

  /// Slots that may be alive at once: no more exist.
  std::int64_t capacity() const { return max_rows_ * max_steps_; }
  std::int64_t steps() const { return steps_; }

  /// Finds a slot for the newest token of each of `rows` hypotheses.
  /// @throws InternalError  more rows or steps than announced.
  void append(std::int64_t rows);
  /// New hypothesis r continues old hypothesis parents[r].
  void select(std::span<const std::int32_t> parents);

  /// i32 [R, max_steps]: the slots of each hypothesis, oldest first; the first steps() count.
  Tensor table();
  /// i32 [R]: the slots of the last append().
  Tensor newest();

 private:
  void free_the_dead();

  std::int64_t max_rows_, max_steps_, rows_ = 0, steps_ = 0;
  std::vector<std::int32_t> table_, next_table_;  // [max_rows, max_steps]
  std::vector<std::int32_t> newest_;
  std::vector<std::uint8_t> alive_;  // by slot
  std::size_t ever_used_ = 0;        // slots from here on were never alive
  std::size_t candidate_ = 0;        // slots below are alive
};

}  // namespace octavo
