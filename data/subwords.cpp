#include "data/subwords.h"

#include <algorithm>

#include "core/error.h"
#include "core/file.h"
#include "core/lines.h"

namespace octavo {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Words longer than this, or more than this many of them, are not kept.
constexpr std::size_t kLongestKnown = 64;
constexpr std::size_t kMostKnown = std::size_t{1} << 17;

std::string surface_in_text(const PieceModel& model, std::size_t id) {
  const Piece& piece = model.pieces[id];
  switch (piece.type) {
    case PieceType::unknown:
      return std::string(kReplacement);
    case PieceType::control:
      return {};
    case PieceType::byte: {
      const auto found = std::find(model.byte_ids.begin(), model.byte_ids.end(), id);
      // A piece of this type that is none of the 256 bytes stands for nothing.
      if (found == model.byte_ids.end()) return {};
      return std::string(1, static_cast<char>(found - model.byte_ids.begin()));
    }
    default:
      return surface(piece);
  }
}

bool never_generated(const PieceModel& model, std::int32_t id, const std::string& surface) {
  const PieceType type = model.pieces[static_cast<std::size_t>(id)].type;
  if (id == model.special.eos) return false;
  return type == PieceType::control || type == PieceType::unknown || type == PieceType::unused ||
         surface.empty() || surface.find('\n') != std::string::npos;
}

bool has_inner_space(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first != std::string_view::npos && text.find(' ', first) != std::string_view::npos;
}

}  // namespace

Subwords::Subwords(std::string_view serialized, const std::string& name)
    : hash_(hash_bytes(serialized)) {
  const PieceModel model = parse_piece_model(serialized, name);
  kind_ = model.kind;
  dummy_prefix_ = model.dummy_prefix;
  std::vector<std::string> texts;
  std::vector<std::int32_t> mute;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const Piece& piece = model.pieces[id];
    texts.push_back(piece.text);
    surfaces_.push_back(surface_in_text(model, id));
    if (never_generated(model, static_cast<std::int32_t>(id), surfaces_.back()))
      mute.push_back(static_cast<std::int32_t>(id));
    const bool matched = piece.type == PieceType::normal || piece.type == PieceType::user_defined;
    if (matched && has_inner_space(surfaces_.back())) words_are_apart_ = false;
  }
  vocabulary_ =
      std::make_unique<const Vocabulary>(std::move(texts), model.special, std::move(mute));
  tables_ = kind_ == SubwordKind::bpe ? bpe_tables(model) : unigram_tables(model);
}

Subwords Subwords::load(const std::filesystem::path& path) {
  return Subwords(read_file(path), path.string());
}

std::string Subwords::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    expect(id >= 0 && id < vocabulary_->size(), "Subwords::decode: no such id");
    text += surfaces_[static_cast<std::size_t>(id)];
  }
  if (dummy_prefix_ && text.starts_with(' ')) text.erase(0, 1);
  return replace_invalid_utf8(text);
}

SubwordEncoder::SubwordEncoder(const Subwords& subwords)
    : subwords_(subwords), segmenter_(subwords.tables_->segmenter()) {}

/// Cuts before every space that follows another character; calls f for each word.
template <typename F>
void SubwordEncoder::for_each_word(std::string_view text, F&& f) {
  if (text.empty()) return;
  spaced_.assign(subwords_.dummy_prefix_ ? 1 : 0, ' ');
  spaced_ += text;
  const std::string_view all = spaced_;
  std::size_t begin = 0;
  while (subwords_.words_are_apart_) {
    const std::size_t letter = all.find_first_not_of(' ', begin);
    if (letter == std::string_view::npos) break;
    const std::size_t end = all.find(' ', letter);
    if (end == std::string_view::npos) break;
    f(all.substr(begin, end - begin));
    begin = end;
  }
  f(all.substr(begin));
}

void SubwordEncoder::encode_word(std::string_view word, std::vector<std::int32_t>& ids) {
  if (word.size() > kLongestKnown) {
    segmenter_->best(word, ids);
    return;
  }
  auto known = known_.find(word);
  if (known == known_.end()) {
    if (known_.size() == kMostKnown) {
      known_.clear();
      known_ids_.clear();
    }
    const std::size_t begin = known_ids_.size();
    segmenter_->best(word, known_ids_);
    const Slice slice{.begin = static_cast<std::uint32_t>(begin),
                      .size = static_cast<std::uint32_t>(known_ids_.size() - begin)};
    known = known_.emplace(std::string(word), slice).first;
  }
  const auto first = known_ids_.begin() + known->second.begin;
  ids.insert(ids.end(), first, first + known->second.size);
}

void SubwordEncoder::encode(std::string_view text, std::vector<std::int32_t>& ids) {
  for_each_word(text, [&](std::string_view word) { encode_word(word, ids); });
}

void SubwordEncoder::sample(std::string_view text, double parameter, RandomStream& random,
                            std::vector<std::int32_t>& ids) {
  for_each_word(text,
                [&](std::string_view word) { segmenter_->sample(word, parameter, random, ids); });
}

}  // namespace octavo
