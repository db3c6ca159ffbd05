#include "model/cache_slots.h"

#include <algorithm>

#include "core/error.h"

namespace octavo {

CacheSlots::CacheSlots(std::int64_t max_rows, std::int64_t max_steps)
    : max_rows_(max_rows),
      max_steps_(max_steps),
      table_(static_cast<std::size_t>(capacity())),
      next_table_(table_.size()),
      newest_(static_cast<std::size_t>(max_rows)),
      alive_(table_.size()) {}

void CacheSlots::append(std::int64_t rows) {
  expect(rows <= max_rows_, "CacheSlots: more rows than were announced");
  expect(steps_ < max_steps_, "CacheSlots: more steps than were announced");
  rows_ = rows;
  for (std::int64_t r = 0; r < rows; ++r) {
    while (alive_[candidate_] != 0) ++candidate_;
    alive_[candidate_] = 1;
    const auto slot = static_cast<std::int32_t>(candidate_);
    newest_[static_cast<std::size_t>(r)] = slot;
    table_[static_cast<std::size_t>(r * max_steps_ + steps_)] = slot;
  }
  ever_used_ = std::max(ever_used_, candidate_ + 1);
  ++steps_;
}

void CacheSlots::select(std::span<const std::int32_t> parents) {
  for (std::size_t r = 0; r < parents.size(); ++r) {
    expect(parents[r] >= 0 && parents[r] < rows_, "CacheSlots::select: no such row");
    std::copy_n(table_.begin() + parents[r] * max_steps_, steps_,
                next_table_.begin() + static_cast<std::int64_t>(r) * max_steps_);
  }
  std::swap(table_, next_table_);
  rows_ = static_cast<std::int64_t>(parents.size());
  free_the_dead();
}

void CacheSlots::free_the_dead() {
  std::fill_n(alive_.begin(), ever_used_, std::uint8_t{0});
  for (std::int64_t r = 0; r < rows_; ++r) {
    const auto row = table_.begin() + r * max_steps_;
    for (auto slot = row; slot != row + steps_; ++slot) alive_[static_cast<std::size_t>(*slot)] = 1;
  }
  candidate_ = 0;
}

Tensor CacheSlots::table() {
  return {table_.data(), {rows_, max_steps_}, DType::i32};
}

Tensor CacheSlots::newest() {
  return {newest_.data(), {rows_}, DType::i32};
}

}  // namespace octavo
