#include "model/cache_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/error.h"
#include "core/philox.h"

namespace octavo {
namespace {

using Slots = std::vector<std::int32_t>;

Slots row_of(CacheSlots& slots, std::int64_t row) {
  const Tensor table = slots.table();
  const auto* first = table.data<std::int32_t>() + row * table.row_stride();
  return {first, first + slots.steps()};
}

// What is written into a slot must be what every hypothesis finds there that continues it: random
// searches, with the text of every hypothesis kept beside.
TEST(CacheSlots, EveryHypothesisFindsWhatItSaw) {
  constexpr std::int64_t kRows = 12, kSteps = 40;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random(seed);
    CacheSlots slots(kRows, kSteps);
    Slots cache(static_cast<std::size_t>(slots.capacity()), -1);
    std::vector<Slots> seen(1 + random.below(kRows));
    std::int32_t token = 0;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      slots.append(static_cast<std::int64_t>(seen.size()));
      const auto* newest = slots.newest().data<std::int32_t>();
      ASSERT_EQ(std::set<std::int32_t>(newest, newest + seen.size()).size(), seen.size());
      for (std::size_t r = 0; r < seen.size(); ++r) {
        cache[static_cast<std::size_t>(newest[r])] = token;
        seen[r].push_back(token++);
      }
      for (std::size_t r = 0; r < seen.size(); ++r) {
        Slots found;
        for (const std::int32_t slot : row_of(slots, static_cast<std::int64_t>(r)))
          found.push_back(cache[static_cast<std::size_t>(slot)]);
        ASSERT_EQ(found, seen[r]) << "seed " << seed << " step " << step << " row " << r;
      }
      Slots parents(1 + random.below(kRows));
      for (std::int32_t& parent : parents)
        parent = static_cast<std::int32_t>(random.below(seen.size()));
      slots.select(parents);
      std::vector<Slots> next;
      for (const std::int32_t parent : parents)
        next.push_back(seen[static_cast<std::size_t>(parent)]);
      seen = next;
    }
  }
}

TEST(CacheSlots, ThoseOfTheDeadAreUsedAgainLowestFirst) {
  CacheSlots slots(3, 4);
  slots.append(3);
  EXPECT_EQ(row_of(slots, 2), (Slots{2}));
  slots.select(Slots{1, 1});  // 0 and 2 died
  slots.append(2);
  EXPECT_EQ(row_of(slots, 0), (Slots{1, 0}));
  EXPECT_EQ(row_of(slots, 1), (Slots{1, 2}));
  slots.select(Slots{0, 1, 0});
  slots.append(3);
  EXPECT_EQ(row_of(slots, 0), (Slots{1, 0, 3}));
  EXPECT_EQ(row_of(slots, 1), (Slots{1, 2, 4}));
  EXPECT_EQ(row_of(slots, 2), (Slots{1, 0, 5}));
}

TEST(CacheSlots, HoldAsManyAsWereAnnounced) {
  CacheSlots slots(2, 3);
  for (int step = 0; step < 3; ++step) slots.append(2);  // nobody ever dies
  EXPECT_EQ(row_of(slots, 1), (Slots{1, 3, 5}));
  EXPECT_THROW(slots.append(1), InternalError);
  CacheSlots others(2, 3);
  EXPECT_THROW(others.append(3), InternalError);
  others.append(1);
  EXPECT_THROW(others.select(Slots{1}), InternalError);
}

}  // namespace
}  // namespace octavo
