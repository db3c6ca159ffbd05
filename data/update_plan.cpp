#include "data/update_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/philox.h"

namespace octavo {

namespace {

/// Lengths are asked for in blocks of this many draws.
constexpr std::int64_t kBlock = 8192;

// Beyond every place in the model that draws dropout from (seed, update, place).
enum class Use : std::uint64_t { fraction = std::uint64_t{1} << 32, shuffle = fraction + 1 };

RandomStream stream(const EpochPlan::Settings& s, Use use) {
  return RandomStream(
      mix(s.seed, static_cast<std::uint64_t>(s.epoch), static_cast<std::uint64_t>(use)));
}

/// Appends `wanted` of the `n` numbers from `first` on, each choice equally likely.
/// Source: Knuth, The Art of Computer Programming, volume 2, section 3.4.2, algorithm S.
void choose(std::int64_t first, std::int64_t n, std::int64_t wanted, RandomStream& random,
            std::vector<std::uint32_t>& out) {
  for (std::int64_t i = 0; wanted > 0; ++i) {
    if (random.below(static_cast<std::uint64_t>(n - i)) < static_cast<std::uint64_t>(wanted)) {
      out.push_back(static_cast<std::uint32_t>(first + i));
      --wanted;
    }
  }
}

void shuffle(std::vector<std::uint32_t>& order, RandomStream random) {
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
}

}  // namespace

EpochPlan::EpochPlan(const Settings& settings, const std::vector<CorpusShare>& shares,
                     Lengths lengths)
    : settings_(settings), lengths_(std::move(lengths)) {
  expect(settings.tokens_per_update > 0, "EpochPlan: tokens_per_update must be positive");
  first_.push_back(0);
  double draws = 0;
  for (const CorpusShare& share : shares) {
    expect(share.sentences >= 0 && share.weight >= 0, "EpochPlan: a negative size or weight");
    first_.push_back(first_.back() + share.sentences);
    draws += std::ceil(static_cast<double>(share.sentences) * share.weight);
  }
  constexpr double kMost = std::numeric_limits<std::uint32_t>::max();
  if (std::max(draws, static_cast<double>(first_.back())) > kMost) {
    throw UserError(fmt::format(
        "data.train: an epoch would draw {:.0f} of {} sentence pairs; at most {:.0f} are possible. "
        "Give lower weights.",
        draws, first_.back(), kMost));
  }

  order_.reserve(static_cast<std::size_t>(draws));
  RandomStream fraction = stream(settings, Use::fraction);
  for (std::size_t c = 0; c < shares.size(); ++c) {
    const std::int64_t n = shares[c].sentences;
    const double whole = std::floor(shares[c].weight);
    for (double pass = 0; pass < whole; ++pass) {
      for (std::int64_t i = 0; i < n; ++i)
        order_.push_back(static_cast<std::uint32_t>(first_[c] + i));
    }
    choose(first_[c], n, std::llround((shares[c].weight - whole) * static_cast<double>(n)),
           fraction, order_);
  }
  if (order_.empty()) {
    throw UserError(
        "data.train: there is no sentence pair to train on. Every pair was dropped or every weight "
        "is too small; 'octavo prepare' lists what it dropped and why.");
  }
  shuffle(order_, stream(settings, Use::shuffle));
}

SentenceRef EpochPlan::sentence(std::int64_t draw) const {
  const std::int64_t number = order_[static_cast<std::size_t>(draw)];
  const auto above = std::upper_bound(first_.begin(), first_.end(), number);
  const auto corpus = static_cast<std::size_t>(above - first_.begin()) - 1;
  return {.corpus = static_cast<std::uint32_t>(corpus),
          .index = static_cast<std::uint32_t>(number - first_[corpus])};
}

bool EpochPlan::has(std::int64_t update) {
  plan_until(update);
  return update >= 0 && update + 1 < static_cast<std::int64_t>(begins_.size());
}

DrawRange EpochPlan::update(std::int64_t update) {
  expect(has(update), "EpochPlan::update: no such update in this epoch");
  const auto k = static_cast<std::size_t>(update);
  return {.begin = begins_[k], .end = begins_[k + 1]};
}

std::int64_t EpochPlan::updates() {
  plan_until(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(begins_.size()) - 1;
}

void EpochPlan::plan_until(std::int64_t update) {
  while (static_cast<std::int64_t>(begins_.size()) - 1 <= update) {
    std::int64_t draw = begins_.back();
    if (draw == draws()) return;
    for (std::int64_t tokens = 0; tokens < settings_.tokens_per_update && draw < draws(); ++draw) {
      if (draw >= block_begin_ + static_cast<std::int64_t>(block_.size())) {
        block_begin_ = draw;
        block_.resize(static_cast<std::size_t>(std::min(kBlock, draws() - draw)));
        lengths_(*this, block_begin_, block_);
      }
      tokens += block_[static_cast<std::size_t>(draw - block_begin_)];
    }
    begins_.push_back(draw);
  }
}

}  // namespace octavo
