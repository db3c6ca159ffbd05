#include "comm/buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "tests/comm/ranks.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Writes down which elements are to be summed, and when they are waited for.
class RecordingGroup final : public Group {
 public:
  explicit RecordingGroup(const float* start) : Group(0, 2, 0), start_(start) {}
  std::vector<std::string> log;

  void broadcast(std::span<std::byte>, int) override {}
  void barrier() override {}
  Ticket start_all_reduce(const Tensor& slice) override {
    const auto first = slice.data<float>() - start_;
    log.push_back(std::to_string(first) + "-" + std::to_string(first + slice.elements()));
    return ++tickets_;
  }
  void wait(Ticket ticket) override { log.push_back("wait " + std::to_string(ticket)); }
  void set_time_limit(double) override {}
  [[noreturn]] void end_all(const std::string&, int exit_code) override { std::exit(exit_code); }

 protected:
  void reduce(void*, std::int64_t, DType) override {}
  void gather_bytes(std::span<const std::byte>, std::span<std::byte>) override {}

 private:
  const float* start_;
  Ticket tickets_ = 0;
};

class GradientBucketsTest : public testing::Test {
 protected:
  GradientBuckets make(std::vector<GradientSlice> slices, std::int64_t bucket_bytes) {
    return GradientBuckets(group_, Tensor(flat_.data(), {100}, DType::f32), slices, bucket_bytes);
  }
  std::vector<float> flat_ = std::vector<float>(100);
  RecordingGroup group_{flat_.data()};
};

TEST_F(GradientBucketsTest, CutsAtTheSliceThatReachesTheSize) {
  EXPECT_EQ(3, make({{0, 10}, {10, 20}, {20, 90}, {90, 100}}, 80).count());
  EXPECT_EQ(1, make({{0, 10}, {10, 20}, {20, 90}, {90, 100}}, 1000).count());
  EXPECT_EQ(4, make({{0, 10}, {10, 20}, {20, 90}, {90, 100}}, 1).count());
  EXPECT_EQ(2, make({{0, 10}, {20, 30}}, 1000).count()) << "a gap ends a bucket";
  EXPECT_EQ(1, make({{0, 10}, {10, 10}, {10, 20}}, 1000).count()) << "an empty slice is nothing";
  EXPECT_EQ(0, make({}, 1000).count());
}

TEST_F(GradientBucketsTest, StartsWhatIsFullInOrder) {
  GradientBuckets buckets = make({{0, 10}, {10, 20}, {30, 40}, {40, 60}}, 1);
  buckets.ready(30, 60);
  EXPECT_THAT(group_.log, IsEmpty()) << "earlier buckets are missing";
  buckets.ready(5, 10);
  EXPECT_THAT(group_.log, IsEmpty()) << "half a bucket";
  buckets.ready(0, 5);
  EXPECT_THAT(group_.log, ElementsAre("0-10"));
  buckets.ready(10, 30);  // ends in the gap
  EXPECT_THAT(group_.log, ElementsAre("0-10", "10-20", "30-40", "40-60"));
  group_.log.clear();
  const BucketReport report = buckets.wait();
  EXPECT_THAT(group_.log, ElementsAre("wait 1", "wait 2", "wait 3", "wait 4"));
  EXPECT_EQ(50 * 4, report.bytes);
  EXPECT_EQ(50 * 4, report.overlapped);
  EXPECT_GE(report.exposed_seconds, 0.0);
}

TEST_F(GradientBucketsTest, WaitStartsWhatWasNotReady) {
  GradientBuckets buckets = make({{0, 10}, {10, 20}, {20, 30}}, 1);
  buckets.ready(0, 10);
  buckets.ready(20, 30);
  const BucketReport report = buckets.wait();
  EXPECT_THAT(group_.log, ElementsAre("0-10", "10-20", "20-30", "wait 1", "wait 2", "wait 3"));
  EXPECT_EQ(120, report.bytes);
  EXPECT_EQ(40, report.overlapped);
  group_.log.clear();
  buckets.wait();  // an update without work
  EXPECT_THAT(group_.log, ElementsAre("0-10", "10-20", "20-30", "wait 4", "wait 5", "wait 6"));
}

TEST_F(GradientBucketsTest, IgnoresWhatNoSliceNames) {
  GradientBuckets buckets = make({{10, 20}}, 1);
  buckets.ready(0, 10);
  buckets.ready(20, 100);
  buckets.ready(15, 15);
  EXPECT_THAT(group_.log, IsEmpty());
  buckets.ready(0, 100);
  EXPECT_THAT(group_.log, ElementsAre("10-20"));
}

TEST_F(GradientBucketsTest, WaitsForStartedSumsBeforeItGoes) {
  {
    GradientBuckets buckets = make({{0, 10}, {10, 20}}, 1);
    buckets.ready(0, 10);
    group_.log.clear();
  }
  EXPECT_THAT(group_.log, ElementsAre("wait 1"));
}

TEST_F(GradientBucketsTest, RefusesFaults) {
  EXPECT_THROW(make({{0, 10}, {5, 20}}, 1), InternalError);
  EXPECT_THROW(make({{10, 20}, {0, 10}}, 1), InternalError);
  EXPECT_THROW(make({{0, 101}}, 1), InternalError);
  EXPECT_THROW(make({{20, 10}}, 1), InternalError);
  EXPECT_THROW(make({{0, 10}}, 0), InternalError);
  EXPECT_THROW(GradientBuckets(group_, Tensor(flat_.data(), {10, 10}, DType::f32), {}, 1),
               InternalError);
  GradientBuckets buckets = make({{0, 10}}, 1);
  buckets.ready(0, 10);
  EXPECT_THROW(buckets.ready(0, 1), InternalError);
}

TEST(GradientBuckets, NeedNoPeers) {
  SingleGroup group;
  std::vector<double> flat(10, 2.0);
  const GradientSlice all{0, 10};
  GradientBuckets buckets(group, Tensor(flat.data(), {10}, DType::f64), {&all, 1}, 1);
  buckets.ready(0, 10);
  EXPECT_EQ(80, buckets.wait().bytes);
  EXPECT_EQ(std::vector<double>(10, 2.0), flat);
}

class BucketsOf : public testing::TestWithParam<int> {};
TEST_P(BucketsOf, SumInAnyOrder) {
  EXPECT_EQ("", testkit::run_ranks(GetParam(), "sum_buckets"));
}
TEST_P(BucketsOf, HideBehindComputing) {
  EXPECT_EQ("", testkit::run_ranks(GetParam(), "hide_sums"));
}
TEST_P(BucketsOf, TakeNoMemory) {
  EXPECT_EQ("", testkit::run_ranks(GetParam(), "allocate_nothing"));
}
INSTANTIATE_TEST_SUITE_P(Ranks, BucketsOf, testing::Values(2, 3));

}  // namespace
}  // namespace octavo
