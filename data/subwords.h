#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/philox.h"
#include "data/piece_model.h"
#include "data/segmenter.h"
#include "data/vocabulary.h"

namespace octavo {

/// A subword model: a SentencePiece file, trained by octavo or elsewhere, bpe or unigram.
///
/// Text is taken as it is: not normalised, no space added or removed, control pieces never
/// recognised in it ("</s>" is four characters), unknown characters spelled in bytes. So
/// decode(encode(text)) == text for every valid UTF-8 text, and UNK never appears. The library
/// trains models; encoding and decoding are our own, since sampling must be drawn by us.
///
/// Safe to use from any number of threads; encoding takes one SubwordEncoder per thread.
class Subwords {
 public:
  /// @param name  of the file, for messages. @throws UserError  see parse_piece_model.
  Subwords(std::string_view serialized, const std::string& name);
  static Subwords load(const std::filesystem::path& path);

  SubwordKind kind() const { return kind_; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  /// XXH3 of the model's file, as 16 hexadecimal digits.
  const std::string& hash() const { return hash_; }

  /// The text that `ids` spell. Special and control ids give nothing, UNK gives U+FFFD. Bytes that
  /// are no valid UTF-8 become U+FFFD each.
  std::string decode(std::span<const std::int32_t> ids) const;

 private:
  friend class SubwordEncoder;

  SubwordKind kind_;
  bool dummy_prefix_;
  /// Whether no piece has a space behind another character, so that words can be cut one by one.
  bool words_are_apart_ = true;
  std::string hash_;
  std::unique_ptr<const Vocabulary> vocabulary_;
  std::vector<std::string> surfaces_;  // id -> the text it stands for
  std::unique_ptr<const SegmenterTables> tables_;
};

/// Encodes text for one thread. Keeps frequent words' pieces, which changes no result.
class SubwordEncoder {
 public:
  /// `subwords` must outlive the encoder and stay where it is.
  explicit SubwordEncoder(const Subwords& subwords);

  /// Appends the ids of `text`, without BOS and EOS. Any bytes will do; empty text has no ids.
  void encode(std::string_view text, std::vector<std::int32_t>& ids);

  /// Appends the ids of one segmentation of `text`, drawn from `random`.
  ///
  /// @param parameter  bpe: the probability, 0 to 1, with which each possible merge is left out at
  ///                   each step (BPE-dropout); 0 is encode(), 1 gives single characters.
  ///                   unigram: alpha > 0; a segmentation's probability is proportional to
  ///                   exp(alpha * score), so the larger, the nearer to encode() (subword
  ///                   regularisation).
  void sample(std::string_view text, double parameter, RandomStream& random,
              std::vector<std::int32_t>& ids);

 private:
  struct WordHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  struct Slice {
    std::uint32_t begin, size;
  };
  template <typename F>
  void for_each_word(std::string_view text, F&& f);
  void encode_word(std::string_view word, std::vector<std::int32_t>& ids);

  const Subwords& subwords_;
  std::unique_ptr<Segmenter> segmenter_;
  std::string spaced_;  // the text with its space in front
  std::unordered_map<std::string, Slice, WordHash, std::equal_to<>> known_;
  std::vector<std::int32_t> known_ids_;
};

}  // namespace octavo
