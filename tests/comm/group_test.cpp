#include "comm/group.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "core/error.h"
#include "core/log.h"
#include "tests/comm/ranks.h"

namespace octavo {
namespace {

using testkit::run_ranks;

TEST(SingleGroup, LeavesValuesAsTheyAre) {
  SingleGroup group;
  EXPECT_EQ(0, group.rank());
  EXPECT_EQ(1, group.size());
  EXPECT_EQ(0, group.local_rank());
  std::vector<float> values = {1.5f, -2.0f};
  group.all_reduce_sum(std::span(values));
  group.broadcast(std::as_writable_bytes(std::span(values)), 0);
  group.wait(group.start_all_reduce(Tensor(values.data(), {2}, DType::f32)));
  group.barrier();
  EXPECT_EQ((std::vector<float>{1.5f, -2.0f}), values);
  EXPECT_EQ(3.25, group.sum(3.25));
  EXPECT_EQ(-7, group.sum(std::int64_t{-7}));
  std::array<int, 1> all{};
  group.all_gather(5, std::span<int>(all));
  EXPECT_EQ(5, all[0]);
}

TEST(SingleGroup, RefusesWhatNoGroupCanDo) {
  SingleGroup group;
  std::vector<float> values(8);
  EXPECT_THROW(group.broadcast({}, 1), InternalError);
  EXPECT_THROW(group.start_all_reduce(Tensor()), InternalError);
  EXPECT_THROW(group.start_all_reduce(Tensor(values.data(), {2}, DType::i64)), InternalError);
  EXPECT_THROW(group.start_all_reduce(Tensor(values.data(), {2, 4}, DType::f32).columns(0, 2)),
               InternalError);
  std::array<int, 2> two{};
  EXPECT_THROW(group.all_gather(5, std::span<int>(two)), InternalError);
}

TEST(SingleGroup, ThrowsOnWhatTheBodyThrows) {
  SingleGroup group;
  EXPECT_THROW(run_together(group, [] { throw UserError("no such file"); }), UserError);
}

TEST(SingleGroupDeathTest, EndsTheProcessWithTheMessage) {
  const auto end = [] {
    set_up_log(0);
    SingleGroup().end_all("out of ideas", 3);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(3), "error: .comm. out of ideas");
}

TEST(Group, IsSingleWithoutMpirun) {
  EXPECT_EQ(1, join_ranks()->size());
}

class MpiGroupOf : public testing::TestWithParam<int> {};

// Sums equal those in rank order, bit by bit: so they are equal on all ranks and in every run.
TEST_P(MpiGroupOf, DoesWhatOneProcessWouldCompute) {
  EXPECT_EQ("", run_ranks(GetParam(), "collectives", GetParam()));
}
INSTANTIATE_TEST_SUITE_P(Ranks, MpiGroupOf, testing::Values(1, 2, 3, 5, 8));

}  // namespace
}  // namespace octavo
