#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <unordered_map>

#include "data/lookup.h"
#include "data/segmenter.h"

namespace octavo {

namespace {

/// A symbol is a piece (its id), or a character that pieces contain but that is no piece itself
/// (numbered from V on), or kUnknown.
constexpr std::uint32_t kUnknown = std::uint32_t{1} << 31;

/// A character's bytes as a key.
std::uint64_t character_key(std::string_view character) {
  std::uint64_t key = 0;
  std::memcpy(&key, character.data(), character.size());
  return key | std::uint64_t{character.size()} << 32;
}

bool mergeable(const Piece& piece) {
  return piece.type == PieceType::normal || piece.type == PieceType::user_defined;
}

struct Merge {
  std::uint32_t rank;    ///< the lower, the earlier; equal scores have equal ranks
  std::uint32_t symbol;  ///< what the two become
};

class BpeTables final : public SegmenterTables {
 public:
  explicit BpeTables(const PieceModel& model);
  std::unique_ptr<Segmenter> segmenter() const override;

  std::uint32_t character(std::string_view text) const {
    const std::uint32_t* symbol = characters_.find(character_key(text));
    return symbol == nullptr ? kUnknown : *symbol;
  }
  /// Null if the two symbols don't merge.
  const Merge* merge(std::uint32_t left, std::uint32_t right) const {
    const std::uint32_t* found = pairs_.find(std::uint64_t{left} << 32 | right);
    return found == nullptr ? nullptr : &merges_[*found];
  }
  bool has_user_pieces() const { return has_user_pieces_; }
  const Trie& user_pieces() const { return user_pieces_; }
  std::uint32_t pieces() const { return pieces_; }
  const std::array<std::int32_t, 256>& byte_ids() const { return byte_ids_; }

 private:
  std::uint32_t pieces_;
  std::array<std::int32_t, 256> byte_ids_;
  FlatMap characters_, pairs_;
  std::vector<Merge> merges_;
  Trie user_pieces_;
  bool has_user_pieces_ = false;
};

std::size_t bytes_of_pieces(const PieceModel& model, bool user_defined_alone) {
  std::size_t bytes = 0;
  for (const Piece& piece : model.pieces) {
    if (user_defined_alone && piece.type != PieceType::user_defined) continue;
    bytes += piece.text.size();
  }
  return bytes;
}

BpeTables::BpeTables(const PieceModel& model)
    : pieces_(static_cast<std::uint32_t>(model.pieces.size())),
      byte_ids_(model.byte_ids),
      characters_(0),
      pairs_(bytes_of_pieces(model, false)),
      user_pieces_(bytes_of_pieces(model, true)) {
  std::vector<std::string> surfaces(pieces_);
  std::unordered_map<std::string_view, std::uint32_t> symbols;
  symbols.reserve(2 * surfaces.size());
  std::map<float, std::uint32_t, std::greater<>> ranks;
  std::vector<std::uint32_t> ids;  // of pieces that can merge, no text twice
  for (std::uint32_t id = 0; id < pieces_; ++id) {
    const Piece& piece = model.pieces[id];
    if (!mergeable(piece)) continue;
    surfaces[id] = surface(piece);
    if (symbols.emplace(surfaces[id], id).second) ids.push_back(id);
    ranks.emplace(piece.score, 0);
    if (piece.type == PieceType::user_defined) {
      user_pieces_.insert(surfaces[id], static_cast<std::int32_t>(id));
      has_user_pieces_ = true;
    }
  }
  std::uint32_t rank = 0;
  for (auto& [score, number] : ranks) number = rank++;

  // Every character of every piece is a symbol.
  std::unordered_map<std::uint64_t, std::uint32_t> characters;
  for (const std::uint32_t id : ids) {
    const std::string_view text = surfaces[id];
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view character = text.substr(at, character_length(text.substr(at)));
      const auto next = pieces_ + static_cast<std::uint32_t>(symbols.size());
      characters.emplace(character_key(character), symbols.emplace(character, next).first->second);
      at += character.size();
    }
  }
  characters_ = FlatMap(characters.size());
  for (const auto& [key, symbol] : characters) characters_.insert(key, symbol);
  // Every cut of a piece into two symbols is a merge.
  for (const std::uint32_t id : ids) {
    const std::string_view text = surfaces[id];
    const std::uint32_t its_rank = ranks.at(model.pieces[id].score);
    std::size_t at = character_length(text);
    for (; at < text.size(); at += character_length(text.substr(at))) {
      const auto left = symbols.find(text.substr(0, at));
      if (left == symbols.end()) continue;
      const auto right = symbols.find(text.substr(at));
      if (right == symbols.end()) continue;
      pairs_.insert(std::uint64_t{left->second} << 32 | right->second,
                    static_cast<std::uint32_t>(merges_.size()));
      merges_.push_back({.rank = its_rank, .symbol = id});
    }
  }
}

class BpeSegmenter final : public Segmenter {
 public:
  explicit BpeSegmenter(const BpeTables& tables) : tables_(tables) {}
  void best(std::string_view text, std::vector<std::int32_t>& ids) override {
    segment(
        text, [] { return false; }, ids);
  }
  void sample(std::string_view text, double dropout, RandomStream& random,
              std::vector<std::int32_t>& ids) override {
    const auto threshold = static_cast<std::uint64_t>(dropout * 0x1.0p32);
    segment(
        text, [&] { return random.next() < threshold; }, ids);
  }

 private:
  struct Symbol {
    std::uint32_t begin, end;  // bytes of the text
    std::int32_t previous, next;
    std::uint32_t symbol;
    bool frozen;  // a user-defined piece: never merged
  };
  struct Candidate {
    std::uint64_t order;  // rank, then position: the smallest comes first
    std::int32_t left, right;
    std::uint32_t right_end, symbol;
    bool operator<(const Candidate& other) const { return order > other.order; }  // for the heap
  };

  template <typename Dropped>
  void segment(std::string_view text, Dropped&& dropped, std::vector<std::int32_t>& ids);
  void split(std::string_view text);
  void consider(std::int32_t left, std::int32_t right);
  void push(const Candidate& candidate) {
    heap_.push_back(candidate);
    std::push_heap(heap_.begin(), heap_.end());
  }
  void merge(const Candidate& candidate);
  bool stale(const Candidate& candidate) const;

  const BpeTables& tables_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_, passed_over_;
};

/// Characters and user-defined pieces, the longest first.
void BpeSegmenter::split(std::string_view text) {
  symbols_.clear();
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    std::size_t length = 0;
    std::uint32_t symbol = kUnknown;
    if (tables_.has_user_pieces()) {
      std::uint32_t node = 0;
      for (std::size_t i = 0; i < rest.size() && tables_.user_pieces().step(node, rest[i]); ++i) {
        const std::int32_t id = tables_.user_pieces().value(node);
        if (id == Trie::kNone) continue;
        length = i + 1;
        symbol = static_cast<std::uint32_t>(id);
      }
    }
    const bool frozen = length > 0;
    if (!frozen) {
      length = character_length(rest);
      symbol = tables_.character(rest.substr(0, length));
    }
    const auto number = static_cast<std::int32_t>(symbols_.size());
    symbols_.push_back({.begin = static_cast<std::uint32_t>(at),
                        .end = static_cast<std::uint32_t>(at + length),
                        .previous = number - 1,
                        .next = number + 1,
                        .symbol = symbol,
                        .frozen = frozen});
    at += length;
  }
  if (!symbols_.empty()) symbols_.back().next = -1;
}

void BpeSegmenter::consider(std::int32_t left, std::int32_t right) {
  if (left < 0 || right < 0) return;
  const Symbol &l = symbols_[static_cast<std::size_t>(left)],
               &r = symbols_[static_cast<std::size_t>(right)];
  if (l.frozen || r.frozen) return;
  const Merge* merge = tables_.merge(l.symbol, r.symbol);
  if (merge == nullptr) return;
  push({.order = std::uint64_t{merge->rank} << 32 | static_cast<std::uint32_t>(left),
        .left = left,
        .right = right,
        .right_end = r.end,
        .symbol = merge->symbol});
}

/// Whether one of the two has been merged into something else since.
bool BpeSegmenter::stale(const Candidate& c) const {
  const Symbol &l = symbols_[static_cast<std::size_t>(c.left)],
               &r = symbols_[static_cast<std::size_t>(c.right)];
  return l.begin == l.end || l.next != c.right || r.end != c.right_end;
}

void BpeSegmenter::merge(const Candidate& c) {
  Symbol &l = symbols_[static_cast<std::size_t>(c.left)],
         &r = symbols_[static_cast<std::size_t>(c.right)];
  l.end = r.end;
  l.symbol = c.symbol;
  l.next = r.next;
  if (r.next >= 0) symbols_[static_cast<std::size_t>(r.next)].previous = c.left;
  r.begin = r.end;  // gone
  consider(l.previous, c.left);
  consider(c.left, l.next);
}

/// Merges the best pair, again and again. With dropout each possible merge is left out with that
/// probability at every step; the word is done when all are left out at once.
/// Source: Provilkov, Emelianenko, Voita (2020), "BPE-Dropout", arXiv:1910.13267, algorithm 1.
template <typename Dropped>
void BpeSegmenter::segment(std::string_view text, Dropped&& dropped,
                           std::vector<std::int32_t>& ids) {
  split(text);
  heap_.clear();
  passed_over_.clear();
  for (std::size_t i = 1; i < symbols_.size(); ++i)
    consider(static_cast<std::int32_t>(i) - 1, static_cast<std::int32_t>(i));
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate candidate = heap_.back();
    heap_.pop_back();
    if (stale(candidate)) continue;
    if (dropped()) {
      passed_over_.push_back(candidate);
      continue;
    }
    merge(candidate);
    for (const Candidate& again : passed_over_) push(again);
    passed_over_.clear();
  }
  for (std::int32_t i = symbols_.empty() ? -1 : 0; i >= 0;) {
    const Symbol& s = symbols_[static_cast<std::size_t>(i)];
    if (s.symbol < tables_.pieces()) {
      ids.push_back(static_cast<std::int32_t>(s.symbol));
    } else {
      for (const char c : text.substr(s.begin, s.end - s.begin))
        ids.push_back(tables_.byte_ids()[static_cast<unsigned char>(c)]);
    }
    i = s.next;
  }
}

std::unique_ptr<Segmenter> BpeTables::segmenter() const {
  return std::make_unique<BpeSegmenter>(*this);
}

}  // namespace

std::unique_ptr<const SegmenterTables> bpe_tables(const PieceModel& model) {
  return std::make_unique<BpeTables>(model);
}

}  // namespace octavo
