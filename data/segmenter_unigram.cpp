#include <algorithm>
#include <cfloat>
#include <cmath>

#include "data/lookup.h"
#include "data/segmenter.h"

namespace octavo {

namespace {

/// A character that is no piece scores this much less than the worst piece. Source: SentencePiece.
constexpr float kUnknownPenalty = 10.0f;
constexpr std::int32_t kUnknown = -1;

class UnigramTables final : public SegmenterTables {
 public:
  explicit UnigramTables(const PieceModel& model);
  std::unique_ptr<Segmenter> segmenter() const override;

  /// Calls f(length in bytes, id, score) for every piece at the start of `text`; and for the first
  /// character, as kUnknown, if it is no piece by itself.
  template <typename F>
  void for_each_start(std::string_view text, F&& f) const {
    const std::size_t character = character_length(text);
    bool known = false;
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size() && trie_.step(node, text[i]); ++i) {
      const std::int32_t id = trie_.value(node);
      if (id == Trie::kNone) continue;
      known |= i + 1 == character;
      f(i + 1, id, scores_[static_cast<std::size_t>(id)]);
    }
    if (!known) f(character, kUnknown, unknown_score_);
  }
  const std::array<std::int32_t, 256>& byte_ids() const { return byte_ids_; }

 private:
  std::array<std::int32_t, 256> byte_ids_;
  Trie trie_;
  std::vector<float> scores_;
  float unknown_score_ = 0;
};

std::size_t total_bytes(const PieceModel& model) {
  std::size_t bytes = 0;
  for (const Piece& piece : model.pieces) bytes += piece.text.size();
  return bytes;
}

UnigramTables::UnigramTables(const PieceModel& model)
    : byte_ids_(model.byte_ids), trie_(total_bytes(model)) {
  float lowest = FLT_MAX, highest = FLT_MIN;
  for (const Piece& piece : model.pieces) {
    if (piece.type != PieceType::normal) continue;
    lowest = std::min(lowest, piece.score);
    highest = std::max(highest, piece.score);
  }
  unknown_score_ = lowest - kUnknownPenalty;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const Piece& piece = model.pieces[id];
    const bool user = piece.type == PieceType::user_defined;
    // A user-defined piece scores so well that it is always chosen, as in SentencePiece.
    scores_.push_back(user ? static_cast<float>(piece.text.size()) * highest - 0.1f : piece.score);
    if (user || piece.type == PieceType::normal)
      trie_.insert(surface(piece), static_cast<std::int32_t>(id));
  }
}

class UnigramSegmenter final : public Segmenter {
 public:
  explicit UnigramSegmenter(const UnigramTables& tables) : tables_(tables) {}
  void best(std::string_view text, std::vector<std::int32_t>& ids) override;
  void sample(std::string_view text, double alpha, RandomStream& random,
              std::vector<std::int32_t>& ids) override;

 private:
  /// The best way to a place: its last piece.
  struct Step {
    std::size_t begin = 0;
    std::int32_t id = kUnknown;
    float score = 0;
    bool reached = false;
  };
  /// A piece that ends at some place. score: log of the summed weights of all ways that end with
  /// it.
  struct Edge {
    std::size_t begin;
    std::int32_t id;
    double score;
    std::int64_t before;  // another edge with the same end, or -1
  };
  struct Cut {
    std::size_t begin, end;
    std::int32_t id;
  };
  double log_sum(std::size_t place) const;
  const Edge& draw(std::size_t place, RandomStream& random) const;
  void emit(std::string_view text, std::vector<std::int32_t>& ids);

  const UnigramTables& tables_;
  std::vector<Step> steps_;  // by place: bytes from the start
  std::vector<Edge> edges_;
  std::vector<std::int64_t> last_;  // place -> the last edge that ends there, or -1
  std::vector<double> weights_;     // place -> log_sum
  std::vector<Cut> cuts_;           // the chosen segmentation, from the end
};

void UnigramSegmenter::emit(std::string_view text, std::vector<std::int32_t>& ids) {
  for (auto cut = cuts_.rbegin(); cut != cuts_.rend(); ++cut) {
    if (cut->id != kUnknown) {
      ids.push_back(cut->id);
      continue;
    }
    for (const char c : text.substr(cut->begin, cut->end - cut->begin))
      ids.push_back(tables_.byte_ids()[static_cast<unsigned char>(c)]);
  }
}

/// Viterbi, from left to right. Of equal ways the first found stays, as in SentencePiece.
void UnigramSegmenter::best(std::string_view text, std::vector<std::int32_t>& ids) {
  steps_.assign(text.size() + 1, {});
  for (std::size_t at = 0; at < text.size(); at += character_length(text.substr(at))) {
    tables_.for_each_start(text.substr(at), [&](std::size_t length, std::int32_t id, float score) {
      Step& step = steps_[at + length];
      const float sum = score + steps_[at].score;
      if (!step.reached || sum > step.score)
        step = {.begin = at, .id = id, .score = sum, .reached = true};
    });
  }
  cuts_.clear();
  for (std::size_t end = text.size(); end > 0; end = steps_[end].begin)
    cuts_.push_back({.begin = steps_[end].begin, .end = end, .id = steps_[end].id});
  emit(text, ids);
}

/// Log of the summed weights of all ways to a place.
double UnigramSegmenter::log_sum(std::size_t place) const {
  const auto edge = [&](std::int64_t e) { return edges_[static_cast<std::size_t>(e)]; };
  double most = edge(last_[place]).score, sum = 0;
  for (std::int64_t e = last_[place]; e >= 0; e = edge(e).before)
    most = std::max(most, edge(e).score);
  for (std::int64_t e = last_[place]; e >= 0; e = edge(e).before)
    sum += std::exp(edge(e).score - most);
  return most + std::log(sum);
}

/// One of the edges that end at a place, with its share of the weights as probability.
const UnigramSegmenter::Edge& UnigramSegmenter::draw(std::size_t place,
                                                     RandomStream& random) const {
  double left = random.uniform();
  const Edge* edge = &edges_[static_cast<std::size_t>(last_[place])];
  while (edge->before >= 0) {
    left -= std::exp(edge->score - weights_[place]);
    if (left < 0) break;
    edge = &edges_[static_cast<std::size_t>(edge->before)];
  }
  return *edge;
}

/// Forward filtering, backward sampling: each segmentation with probability proportional to
/// exp(alpha * its score). Source: Kudo (2018), "Subword Regularization", arXiv:1804.10959,
/// section 3.2, over all segmentations.
void UnigramSegmenter::sample(std::string_view text, double alpha, RandomStream& random,
                              std::vector<std::int32_t>& ids) {
  edges_.clear();
  last_.assign(text.size() + 1, -1);
  weights_.assign(text.size() + 1, 0.0);
  for (std::size_t at = 0; at < text.size(); at += character_length(text.substr(at))) {
    if (at > 0) weights_[at] = log_sum(at);
    tables_.for_each_start(text.substr(at), [&](std::size_t length, std::int32_t id, float score) {
      edges_.push_back({.begin = at,
                        .id = id,
                        .score = weights_[at] + alpha * static_cast<double>(score),
                        .before = last_[at + length]});
      last_[at + length] = static_cast<std::int64_t>(edges_.size()) - 1;
    });
  }
  if (!text.empty()) weights_[text.size()] = log_sum(text.size());
  cuts_.clear();
  for (std::size_t end = text.size(); end > 0;) {
    const Edge& edge = draw(end, random);
    cuts_.push_back({.begin = edge.begin, .end = end, .id = edge.id});
    end = edge.begin;
  }
  emit(text, ids);
}

std::unique_ptr<Segmenter> UnigramTables::segmenter() const {
  return std::make_unique<UnigramSegmenter>(*this);
}

}  // namespace

std::unique_ptr<const SegmenterTables> unigram_tables(const PieceModel& model) {
  return std::make_unique<UnigramTables>(model);
}

}  // namespace octavo
