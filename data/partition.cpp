#include "data/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/token_batch.h"

namespace octavo {

namespace {

// The cost model, in 1/1000 of a source token's linear work. A Transformer layer multiplies
// 12 d^2 per token in the encoder, 16 d^2 in the decoder (hidden width 4 d), and the decoder's side
// also has the projection on the vocabulary: about 2.2 in all for d 256 to 512 and 8,000 to 32,000
// subwords. Attention adds 2 d per pair of positions: 1 / (6 d) of a token's linear work, twice
// that since its products are small.
constexpr std::int64_t kSourceToken = 1000;
constexpr std::int64_t kTargetToken = 2200;
constexpr std::int64_t kPositionPair = 1;

/// What a micro-batch holds so far.
class Filling {
 public:
  bool empty() const { return sentences_ == 0; }
  std::int64_t cost() const { return cost_; }

  /// Null if `pair` fits too; else which limit stands against it.
  const char* obstacle(PairLength pair, const BatchLimits& limits) const {
    const std::int64_t s = pair.source, t = pair.target;
    if (std::max(s, t) > limits.longest) return "longest";
    if (sentences_ + 1 > limits.sentences) return "sentences";
    if (round_up(source_ + s, kRowMultiple) > limits.source_tokens) return "source_tokens";
    if (round_up(target_ + t, kRowMultiple) > limits.target_tokens) return "target_tokens";
    if (std::max(source_squares_ + s * s, target_squares_ + t * t) > limits.sum_squares)
      return "sum_squares";
    return nullptr;
  }

  void add(PairLength pair) {
    const std::int64_t s = pair.source, t = pair.target;
    ++sentences_;
    source_ += s;
    target_ += t;
    source_squares_ += s * s;
    target_squares_ += t * t;
    cost_ += pair_cost(pair);
  }

 private:
  std::int64_t sentences_ = 0, source_ = 0, target_ = 0;
  std::int64_t source_squares_ = 0, target_squares_ = 0, cost_ = 0;
};

/// Cuts order[begin, end) from left to right. A micro-batch is closed when the next sentence does
/// not fit, or when it has its even share of the cost that is left for `wanted` micro-batches.
/// wanted = 0 fills each to the limits.
void cut(std::span<const PairLength> update, const BatchLimits& limits, MicroBatch range,
         std::int64_t wanted, Partition& out) {
  std::int64_t left = 0;
  if (wanted > 0) {
    for (std::uint32_t i = range.begin; i < range.end; ++i) left += pair_cost(update[out.order[i]]);
  }
  Filling filling;
  std::uint32_t begin = range.begin;
  for (std::uint32_t i = range.begin; i < range.end; ++i) {
    const PairLength pair = update[out.order[i]];
    // Half of the next sentence decides whether it is nearer to the even share with it or without.
    const bool full =
        wanted > 1 && (filling.cost() + pair_cost(pair) / 2) * wanted > left && !filling.empty();
    if (full || filling.obstacle(pair, limits) != nullptr) {
      out.micro_batches.push_back({begin, i});
      left -= filling.cost();
      --wanted;
      filling = {};
      begin = i;
    }
    filling.add(pair);
  }
  if (begin < range.end) out.micro_batches.push_back({begin, range.end});
}

/// The fewest micro-batches that the limits allow in this order, made even if that many suffice.
void cut_evenly(std::span<const PairLength> update, const BatchLimits& limits, MicroBatch range,
                Partition& out) {
  const std::size_t before = out.micro_batches.size();
  cut(update, limits, range, 0, out);
  const std::size_t fewest = out.micro_batches.size() - before;
  if (fewest < 2) return;
  out.micro_batches.resize(before);
  cut(update, limits, range, static_cast<std::int64_t>(fewest), out);
  if (out.micro_batches.size() - before > fewest) {
    out.micro_batches.resize(before);
    cut(update, limits, range, 0, out);
  }
}

void check_alone(std::span<const PairLength> update, const BatchLimits& limits,
                 const std::function<std::string(std::uint32_t)>& name) {
  for (std::uint32_t i = 0; i < update.size(); ++i) {
    const char* obstacle = Filling().obstacle(update[i], limits);
    if (obstacle == nullptr) continue;
    throw UserError(fmt::format(
        "{}: {} source and {} target tokens (EOS counted) do not fit into a micro-batch of their "
        "own: the limits are {} source tokens, {} target tokens, {} sentences, {} tokens a "
        "sentence, sum of squares {}, and '{}' is passed (tokens count in multiples of {}). Raise "
        "max_tokens or lower data.max_length.",
        name(i), update[i].source, update[i].target, limits.source_tokens, limits.target_tokens,
        limits.sentences, limits.longest, limits.sum_squares, obstacle, kRowMultiple));
  }
}

/// Longest processing time first: the next most costly sentence goes to the rank with the least
/// work. Fills costs, and `rank_of` by sentence.
void assign(std::span<const PairLength> update, int ranks, Partition& out,
            std::vector<std::int32_t>& rank_of) {
  using Load = std::pair<std::int64_t, int>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (int r = 0; r < ranks; ++r) loads.emplace(0, r);
  out.costs.assign(static_cast<std::size_t>(ranks), 0);
  for (const std::uint32_t i : out.order) {
    const auto [load, rank] = loads.top();
    loads.pop();
    rank_of[i] = rank;
    out.costs[static_cast<std::size_t>(rank)] = load + pair_cost(update[i]);
    loads.emplace(load + pair_cost(update[i]), rank);
  }
}

}  // namespace

std::span<const MicroBatch> Partition::of_rank(int rank) const {
  const auto r = static_cast<std::size_t>(rank);
  return std::span(micro_batches).subspan(first[r], first[r + 1] - first[r]);
}

std::int64_t pair_cost(PairLength pair) {
  const std::int64_t s = pair.source, t = pair.target;
  return kSourceToken * s + kTargetToken * t + kPositionPair * (s * s + t * t + s * t);
}

void partition(std::span<const PairLength> update, int ranks, const BatchLimits& limits,
               const std::function<std::string(std::uint32_t)>& name, Partition& out) {
  expect(ranks > 0, "partition: ranks must be positive");
  check_alone(update, limits, name);

  out.order.resize(update.size());
  std::iota(out.order.begin(), out.order.end(), 0u);
  std::sort(out.order.begin(), out.order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(-pair_cost(update[a]), a) < std::tuple(-pair_cost(update[b]), b);
  });
  std::vector<std::int32_t> rank_of(update.size());
  assign(update, ranks, out, rank_of);

  std::sort(out.order.begin(), out.order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(rank_of[a], -update[a].target, -update[a].source, a) <
           std::tuple(rank_of[b], -update[b].target, -update[b].source, b);
  });
  out.micro_batches.clear();
  out.first.assign(1, 0);
  std::uint32_t begin = 0;
  for (int r = 0; r < ranks; ++r) {
    std::uint32_t end = begin;
    while (end < out.order.size() && rank_of[out.order[end]] == r) ++end;
    cut_evenly(update, limits, {begin, end}, out);
    out.first.push_back(static_cast<std::uint32_t>(out.micro_batches.size()));
    begin = end;
  }
}

}  // namespace octavo
