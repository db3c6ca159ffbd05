#include "translate/sentence_beam.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace octavo {
namespace {

constexpr std::int32_t kRoot = -1;

}  // namespace

SentenceBeam::SentenceBeam(const SearchRules& rules, std::int32_t eos, std::int64_t limit)
    : rules_(rules), eos_(eos), limit_(limit), width_(static_cast<std::size_t>(rules.beam)) {
  expect(limit >= 1, "SentenceBeam: no room for EOS");
  living_.push_back({.row = 0, .piece = kRoot, .log_probability = 0, .node = kRoot});
}

void SentenceBeam::advance(std::span<const Extension> extensions) {
  ++length_;
  next_.clear();
  const std::size_t window = rules_.window * width_;
  std::size_t ended = 0;
  extensions = extensions.first(std::min(extensions.size(), considered()));
  for (std::size_t i = 0; i < extensions.size(); ++i) {
    const Extension& e = extensions[i];
    const std::int32_t before = living_[static_cast<std::size_t>(e.row)].node;
    if (e.piece == eos_) {
      if (i >= window) continue;
      finish(before, e.log_probability, true);
      ++ended;
    } else if (next_.size() < width_) {
      nodes_.push_back({.parent = before, .piece = e.piece});
      next_.push_back({.row = e.row,
                       .piece = e.piece,
                       .log_probability = e.log_probability,
                       .node = static_cast<std::int32_t>(nodes_.size()) - 1});
    }
  }
  if (rules_.stop == StopRule::exhausted) width_ -= ended;
  std::swap(living_, next_);
  expect(!living_.empty() || !finished_.empty(), "SentenceBeam: nothing but EOS can be generated");
  const bool at_limit = length_ == limit_;
  if (at_limit && (rules_.keep_unfinished || finished_.empty())) {
    for (const Living& l : living_) finish(l.node, l.log_probability, false);
  }
  if (at_limit || may_stop()) living_.clear();
}

void SentenceBeam::finish(std::int32_t node, double log_probability, bool ended) {
  const Finished f{.node = node,
                   .log_probability = log_probability,
                   .score = rules_.score(log_probability, length_),
                   .ended = ended};
  if (finished_.size() == static_cast<std::size_t>(rules_.beam)) {
    if (rules_.stop == StopRule::full || f.score <= finished_.back().score) return;
    finished_.pop_back();
  }
  const auto place =
      std::upper_bound(finished_.begin(), finished_.end(), f.score,
                       [](double score, const Finished& other) { return score > other.score; });
  finished_.insert(place, f);
}

bool SentenceBeam::may_stop() const {
  const bool full = finished_.size() == static_cast<std::size_t>(rules_.beam);
  switch (rules_.stop) {
    case StopRule::full:
      return full;
    case StopRule::unbeatable: {
      // Log-probabilities only fall and are not above 0: the best that the future holds is today's
      // at the largest penalty.
      if (rules_.nbest == 1 ? finished_.empty() : !full) return false;
      const double wanted = rules_.nbest == 1 ? finished_.front().score : finished_.back().score;
      return !living_.empty() && wanted > rules_.score(living_.front().log_probability, limit_);
    }
    case StopRule::exhausted:
      break;
  }
  return false;
}

std::vector<Translation> SentenceBeam::best() const {
  std::vector<Translation> best;
  const std::size_t n = std::min(finished_.size(), static_cast<std::size_t>(rules_.nbest));
  for (std::size_t i = 0; i < n; ++i) best.push_back(translation(finished_[i]));
  return best;
}

Translation SentenceBeam::translation(const Finished& finished) const {
  Translation t{.ids = {},
                .log_probability = finished.log_probability,
                .score = finished.score,
                .ended = finished.ended};
  for (std::int32_t node = finished.node; node != kRoot;
       node = nodes_[static_cast<std::size_t>(node)].parent) {
    t.ids.push_back(nodes_[static_cast<std::size_t>(node)].piece);
  }
  std::reverse(t.ids.begin(), t.ids.end());
  return t;
}

}  // namespace octavo
