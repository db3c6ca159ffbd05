#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/philox.h"
#include "data/piece_model.h"

namespace octavo {

/// A uniform random choice of at most `limit` of the lines offered: a pure function of the lines,
/// their order and the seed. Source: Vitter (1985), "Random Sampling with a Reservoir", algorithm
/// R.
class LineSample {
 public:
  LineSample(std::size_t limit, std::uint64_t seed) : limit_(limit), random_(seed) {}
  void offer(std::string_view line);
  const std::vector<std::string>& lines() const { return lines_; }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::size_t limit_;
  RandomStream random_;
  std::uint64_t offered_ = 0;
  std::vector<std::string> lines_;
};

struct SubwordTraining {
  SubwordKind kind;
  std::int64_t vocabulary_size;
  /// Share of the text's characters that get a piece of their own; the rest is spelled in bytes.
  double character_coverage;
  /// bpe: the rarest words beyond so many are left out, as long as they are at most 3 % of the
  /// text: they teach next to nothing, and training takes longer with every word. Text without
  /// spaces loses no more: its "words" are whole lines, each as rare as the others.
  std::size_t most_words = 200000;
};

/// Trains a SentencePiece model by our text contract and returns its file. Deterministic: one
/// thread, no random numbers. Takes seconds for 100,000 lines and less than a minute for a million
/// (bpe).
/// @param lines  valid UTF-8; consumed
/// @throws UserError  the text is empty, or the vocabulary too large or too small for it.
std::string train_subwords(const SubwordTraining& settings, std::vector<std::string> lines);

}  // namespace octavo
