// Scenarios in which everything goes well: results are compared with what one process computes.
#include <fmt/format.h>

#include <cstring>
#include <type_traits>
#include <vector>

#include "comm/group.h"
#include "core/error.h"
#include "tests/comm/scenarios.h"

namespace octavo {
namespace {

// Sizes around the limits between the small and the large way, of a piece, and of a block.
constexpr std::int64_t kCounts[] = {0,    1,    2,    5,     7,      511,    512,    513,
                                    1023, 1024, 1025, 65537, 262144, 524288, 524289, 1500007};

// Values whose sum depends on the order of the additions.
template <typename T>
T addend(int rank, std::int64_t i) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>((rank + 1) * 1000003 - i);
  const auto mixed = static_cast<std::uint32_t>((i * 16 + rank) * 2654435761u);
  return static_cast<T>(mixed % 2000003u) / T(7) - T(140000);
}

template <typename T>
std::vector<T> addends(int rank, std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = addend<T>(rank, i);
  return values;
}

template <typename T>
std::vector<T> sum_in_rank_order(int ranks, std::int64_t count) {
  std::vector<T> total = addends<T>(0, count);
  for (int r = 1; r < ranks; ++r)
    for (std::int64_t i = 0; i < count; ++i) total[static_cast<std::size_t>(i)] += addend<T>(r, i);
  return total;
}

template <typename T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <typename T>
void check_sums_of(Group& group) {
  for (const std::int64_t count : kCounts) {
    std::vector<T> values = addends<T>(group.rank(), count);
    group.all_reduce_sum(std::span<T>(values));
    expect(
        same_bytes(values, sum_in_rank_order<T>(group.size(), count)),
        fmt::format("sum of {} {} differs from the sum in rank order", count, name_of(kDTypeOf<T>))
            .c_str());
  }
}

void check_control_plane(Group& group) {
  const int size = group.size(), rank = group.rank();
  expect(group.local_rank() == rank, "all ranks are on one host");
  expect(group.sum(std::int64_t{rank + 1}) == size * (size + 1) / 2, "sum of one integer");
  expect(group.sum(0.5) == 0.5 * size, "sum of one number");

  struct Card {
    int rank;
    double square;
  };
  std::vector<Card> cards(static_cast<std::size_t>(size));
  group.all_gather(Card{rank, 1.0 * rank * rank}, std::span(cards));
  for (int r = 0; r < size; ++r)
    expect(cards[static_cast<std::size_t>(r)].rank == r &&
               cards[static_cast<std::size_t>(r)].square == 1.0 * r * r,
           "gathered structs");

  for (int root = 0; root < size; ++root)
    for (const std::int64_t count : {0, 1, 4097, 3000001}) {
      std::vector<float> values = addends<float>(rank, count);
      group.broadcast(std::as_writable_bytes(std::span(values)), root);
      expect(same_bytes(values, addends<float>(root, count)), "broadcast");
    }
  for (int i = 0; i < 100; ++i) group.barrier();
}

void check_asynchronous_sums(Group& group) {
  const int rank = group.rank(), size = group.size();
  std::vector<float> a = addends<float>(rank, 300001);
  std::vector<double> b = addends<double>(rank, 70001);
  std::vector<float> c = addends<float>(rank, 3);
  const Ticket of_a = group.start_all_reduce(Tensor(a.data(), {300001}, DType::f32));
  const Ticket of_b = group.start_all_reduce(Tensor(b.data(), {70001}, DType::f64));
  const Ticket of_c = group.start_all_reduce(Tensor(c.data(), {3}, DType::f32));
  const double in_between = group.sum(1.0);
  group.wait(of_c);
  group.wait(of_a);
  group.wait(of_b);
  group.wait(of_a);  // waiting twice is nothing
  expect(in_between == size, "a sum behind started sums");
  expect(same_bytes(a, sum_in_rank_order<float>(size, 300001)), "first sum");
  expect(same_bytes(b, sum_in_rank_order<double>(size, 70001)), "second sum");
  expect(same_bytes(c, sum_in_rank_order<float>(size, 3)), "third sum");

  // More sums than the queue holds.
  std::vector<float> many(5000, 1.0f);
  Ticket last = 0;
  for (float& value : many) last = group.start_all_reduce(Tensor(&value, {1}, DType::f32));
  group.wait(last);
  for (const float value : many) expect(value == static_cast<float>(size), "many sums");
}

}  // namespace

void check_collectives(double ranks) {
  const auto group = join_ranks();
  run_together(*group, [&] {
    expect(group->size() == static_cast<int>(ranks), "wrong number of ranks");
    check_sums_of<float>(*group);
    check_sums_of<double>(*group);
    check_sums_of<std::int64_t>(*group);
    check_control_plane(*group);
    check_asynchronous_sums(*group);
  });
}

}  // namespace octavo
