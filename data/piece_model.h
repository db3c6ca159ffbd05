#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/vocabulary.h"

namespace octavo {

enum class SubwordKind : std::uint8_t { bpe, unigram };

/// What a SentencePiece model says about a piece; the values are those of its file.
enum class PieceType : std::uint8_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

struct Piece {
  std::string text;  ///< spaces as U+2581, as in the file
  float score = 0;
  PieceType type = PieceType::normal;
};

/// What a piece stands for in text: its own text with spaces for U+2581.
std::string surface(const Piece& piece);

/// The part of a SentencePiece model that octavo uses, with what was missing added.
struct PieceModel {
  SubwordKind kind = SubwordKind::unigram;
  std::vector<Piece> pieces;
  SpecialIds special;
  std::array<std::int32_t, 256> byte_ids{};
  /// Text is encoded with one space put before it, which decoding takes off again.
  bool dummy_prefix = true;
};

/// Reads a SentencePiece model (a protocol buffer, .model). PAD, BOS, EOS, UNK and the 256 byte
/// pieces are added behind the last id as far as they are missing. Its normaliser is not applied:
/// text is encoded as it is.
/// @param name  of the file, for messages
/// @throws UserError  it is no such model, or one that octavo can't follow: words, characters,
///                    white space as suffix, lower-casing.
PieceModel parse_piece_model(std::string_view serialized, const std::string& name);

}  // namespace octavo
