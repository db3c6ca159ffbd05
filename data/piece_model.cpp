#include "data/piece_model.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "core/error.h"

namespace octavo {

namespace {

struct Damaged {};

/// Walks the fields of one protocol-buffer message.
/// Source: protobuf.dev/programming-guides/encoding
class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  /// Moves to the next field; false at the end. @throws Damaged
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t tag = varint();
    field_ = tag >> 3;
    switch (tag & 7) {
      case 0:
        number_ = varint();
        break;
      case 1:
        bytes_ = take(8);
        break;
      case 2:
        bytes_ = take(varint());
        break;
      case 5:
        bytes_ = take(4);
        break;
      default:
        throw Damaged{};
    }
    wire_ = tag & 7;
    return true;
  }
  std::uint64_t field() const { return field_; }
  std::uint64_t number() const { return wire_ == 0 ? number_ : throw Damaged{}; }
  bool flag() const { return number() != 0; }
  std::string_view bytes() const { return wire_ == 2 ? bytes_ : throw Damaged{}; }
  float real() const {
    if (wire_ != 5) throw Damaged{};
    float value = 0;
    std::memcpy(&value, bytes_.data(), sizeof value);
    return value;
  }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    throw Damaged{};
  }
  std::string_view take(std::uint64_t n) {
    if (n > rest_.size()) throw Damaged{};
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }

  std::string_view rest_, bytes_;
  std::uint64_t field_ = 0, number_ = 0, wire_ = 0;
};

/// The file's fields, before anything is made of them. Defaults are SentencePiece's.
struct Fields {
  std::vector<Piece> pieces;
  std::uint64_t model_type = 1;
  bool suffix = false, dummy_prefix = true, escape = true, normalises = false;
  std::string normaliser;
  std::string unk = "<unk>", bos = "<s>", eos = "</s>", pad = "<pad>";
};

Piece read_piece(std::string_view bytes) {
  Piece piece;
  for (Message m(bytes); m.next();) {
    if (m.field() == 1) piece.text = m.bytes();
    if (m.field() == 2) piece.score = m.real();
    if (m.field() == 3) {
      if (m.number() < 1 || m.number() > 6) throw Damaged{};
      piece.type = static_cast<PieceType>(m.number());
    }
  }
  if (piece.text.empty()) throw Damaged{};
  return piece;
}

void read_trainer(std::string_view bytes, Fields& fields) {
  for (Message m(bytes); m.next();) {
    switch (m.field()) {
      case 3:
        fields.model_type = m.number();
        break;
      case 24:
        fields.suffix = m.flag();
        break;
      case 45:
        fields.unk = m.bytes();
        break;
      case 46:
        fields.bos = m.bytes();
        break;
      case 47:
        fields.eos = m.bytes();
        break;
      case 48:
        fields.pad = m.bytes();
        break;
      default:
        break;
    }
  }
}

void read_normaliser(std::string_view bytes, Fields& fields) {
  for (Message m(bytes); m.next();) {
    switch (m.field()) {
      case 1:
        fields.normaliser = m.bytes();
        break;
      case 2:
        fields.normalises = !m.bytes().empty();
        break;
      case 3:
        fields.dummy_prefix = m.flag();
        break;
      case 5:
        fields.escape = m.flag();
        break;
      default:
        break;
    }
  }
}

Fields read_fields(std::string_view serialized) {
  Fields fields;
  for (Message m(serialized); m.next();) {
    if (m.field() == 1) fields.pieces.push_back(read_piece(m.bytes()));
    if (m.field() == 2) read_trainer(m.bytes(), fields);
    if (m.field() == 3) read_normaliser(m.bytes(), fields);
  }
  return fields;
}

void check_supported(const Fields& fields, const std::string& name) {
  const auto refuse = [&](std::string_view what) {
    throw UserError(
        fmt::format("{}: {}. Train a bpe or unigram model with SentencePiece's defaults, or let "
                    "'octavo prepare' "
                    "train one.",
                    name, what));
  };
  if (fields.model_type != 1 && fields.model_type != 2)
    refuse(
        "a SentencePiece model of words or characters can't be used; octavo reads bpe and unigram");
  if (fields.suffix) refuse("this model treats white space as a suffix, which octavo does not");
  if (!fields.escape) refuse("this model does not escape white space");
  if (fields.normalises && fields.normaliser.ends_with("_cf"))
    refuse("this model lower-cases text, so no translation could have capitals");
  if (fields.normalises && fields.normaliser != "identity") {
    spdlog::warn(
        "[data] {}: the model was made for text normalised by '{}'. Octavo encodes text as it is, "
        "so "
        "that decoding gives it back exactly; characters that the model does not know are spelled "
        "in "
        "bytes.",
        name, fields.normaliser);
  }
}

/// The id of the piece with this text and type; added at the end if there is none.
std::int32_t find_or_add(std::vector<Piece>& pieces, const std::string& text, PieceType type) {
  const auto found = std::find_if(pieces.begin(), pieces.end(), [&](const Piece& p) {
    return p.type == type && (type == PieceType::unknown || p.text == text);
  });
  const auto id = static_cast<std::int32_t>(found - pieces.begin());
  if (found == pieces.end()) pieces.push_back({.text = text, .score = 0, .type = type});
  return id;
}

}  // namespace

std::string surface(const Piece& piece) {
  constexpr std::string_view kSpaceMark = "\xE2\x96\x81";
  std::string text = piece.text;
  for (std::size_t at = 0; (at = text.find(kSpaceMark, at)) != std::string::npos; ++at)
    text.replace(at, kSpaceMark.size(), " ");
  return text;
}

PieceModel parse_piece_model(std::string_view serialized, const std::string& name) {
  Fields fields;
  try {
    fields = read_fields(serialized);
    if (fields.pieces.empty()) throw Damaged{};
  } catch (const Damaged&) {
    throw UserError(fmt::format(
        "{}: this is not a SentencePiece model, or it is damaged. It should be the file that "
        "spm_train calls PREFIX.model.",
        name));
  }
  check_supported(fields, name);

  PieceModel model{.kind = fields.model_type == 2 ? SubwordKind::bpe : SubwordKind::unigram,
                   .pieces = std::move(fields.pieces),
                   .special = {},
                   .byte_ids = {},
                   .dummy_prefix = fields.dummy_prefix};
  model.special.pad = find_or_add(model.pieces, fields.pad, PieceType::control);
  model.special.bos = find_or_add(model.pieces, fields.bos, PieceType::control);
  model.special.eos = find_or_add(model.pieces, fields.eos, PieceType::control);
  model.special.unk = find_or_add(model.pieces, fields.unk, PieceType::unknown);
  for (std::size_t byte = 0; byte < model.byte_ids.size(); ++byte) {
    model.byte_ids[byte] =
        find_or_add(model.pieces, fmt::format("<0x{:02X}>", byte), PieceType::byte);
  }
  return model;
}

}  // namespace octavo
