#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/philox.h"
#include "data/piece_model.h"

namespace octavo {

/// Cuts text into pieces. Spaces in text match U+2581 in pieces; a literal U+2581 in text matches
/// nothing, and what matches nothing is spelled in bytes: so decoding can give back every text.
/// One segmenter serves one thread.
class Segmenter {
 public:
  virtual ~Segmenter() = default;
  /// Appends the ids of the one best segmentation.
  virtual void best(std::string_view text, std::vector<std::int32_t>& ids) = 0;
  /// Appends the ids of a segmentation drawn at random. See SubwordEncoder::sample.
  virtual void sample(std::string_view text, double parameter, RandomStream& random,
                      std::vector<std::int32_t>& ids) = 0;
};

/// The tables of a model; segmenters of any number of threads share them.
class SegmenterTables {
 public:
  virtual ~SegmenterTables() = default;
  virtual std::unique_ptr<Segmenter> segmenter() const = 0;
};

std::unique_ptr<const SegmenterTables> bpe_tables(const PieceModel& model);
std::unique_ptr<const SegmenterTables> unigram_tables(const PieceModel& model);

}  // namespace octavo
