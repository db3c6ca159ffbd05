#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/token_batch.h"

namespace octavo {

/// Ids with a meaning of their own. These values are those of models trained by octavo.
struct SpecialIds {
  std::int32_t pad = 0;
  std::int32_t bos = 1;
  std::int32_t eos = 2;
  std::int32_t unk = 3;
};

/// The ids of one side, or of both if they share one subword model. docs/formats/vocabulary.md
class Vocabulary {
 public:
  /// @param never_generated  ids that a translation must not contain: PAD, BOS, UNK, other control
  ///                         pieces, and what would end a line.
  Vocabulary(std::vector<std::string> pieces, SpecialIds special,
             std::vector<std::int32_t> never_generated);

  /// V, ids are 0 to V - 1.
  std::int64_t size() const { return static_cast<std::int64_t>(pieces_.size()); }
  /// V rounded up, the rows of an embedding. The rows from size() on belong to no piece.
  std::int64_t padded_size() const { return round_up(size(), kRowMultiple); }

  std::int32_t pad() const { return special_.pad; }
  std::int32_t bos() const { return special_.bos; }
  std::int32_t eos() const { return special_.eos; }
  std::int32_t unk() const { return special_.unk; }
  /// In increasing order. EOS is not among them.
  std::span<const std::int32_t> never_generated() const { return never_generated_; }

  /// How the subword model spells it, e.g. "▁Haus" with U+2581 for a space, "<0x0A>" for a byte.
  const std::string& piece(std::int32_t id) const;

  /// The vocabulary file's content: one line for each id.
  std::string text() const;
  /// XXH3 of text(), as 16 hexadecimal digits: equal if and only if ids mean the same.
  const std::string& hash() const { return hash_; }
  /// @throws UserError
  void write(const std::filesystem::path& path) const;

 private:
  std::vector<std::string> pieces_;
  SpecialIds special_;
  std::vector<std::int32_t> never_generated_;
  std::string hash_;
};

}  // namespace octavo
