#include "core/recorder.h"

namespace octavo {

std::int64_t OpList::flops() const {
  std::int64_t sum = 0;
  for (const OpCost& op : ops_) sum += op.flops;
  return sum;
}

void Profile::begin(const OpCost& cost) {
  const auto now = Clock::now();
  if (!open_.empty()) {
    open_.back().entry->seconds += std::chrono::duration<double>(now - open_.back().since).count();
  }
  auto it = entries_.find(cost.name);
  if (it == entries_.end()) it = entries_.emplace(std::string(cost.name), Entry{}).first;
  Entry& entry = it->second;
  entry.calls += 1;
  entry.flops += cost.flops;
  flops_ += cost.flops;
  entry.bytes += cost.bytes;
  open_.push_back({&entry, now});
}

void Profile::end() {
  const auto now = Clock::now();
  open_.back().entry->seconds += std::chrono::duration<double>(now - open_.back().since).count();
  open_.pop_back();
  if (!open_.empty()) open_.back().since = now;
}

}  // namespace octavo
