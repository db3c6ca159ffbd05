#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/token_batch.h"
#include "data/corpus.h"
#include "data/partition.h"
#include "data/subwords.h"
#include "data/update_plan.h"

namespace octavo {

/// What updates are drawn from. Nothing is owned; all of it must outlive whoever uses it.
struct TrainingData {
  std::vector<const Corpus*> corpora;
  std::vector<double> weights;  ///< one for each corpus, see CorpusShare
  const Subwords* source;
  const Subwords* target;
  /// SubwordEncoder::sample's parameter: segmentations are drawn anew each epoch, from the text
  /// columns. Empty: the ids as they were prepared.
  std::optional<double> sample;
  /// A drawn segmentation longer than this (EOS counted) gives way to the one prepared.
  std::int64_t max_length;
};

struct UpdateSettings {
  std::uint64_t seed;
  std::int64_t tokens_per_update;  ///< target tokens, EOS counted
  int rank;
  int ranks;
  BatchLimits limits;
};

/// A place in training: update `update` of epoch `epoch`, both counted from 0.
struct Cursor {
  std::int64_t epoch = 0;
  std::int64_t update = 0;
  bool operator==(const Cursor&) const = default;
};

/// One update, as one rank needs it. Reuse one: its memory is kept.
class UpdateBatches {
 public:
  Cursor cursor;                        ///< which update this is
  Cursor next;                          ///< where to go on after it: what a checkpoint keeps
  std::int64_t sentences = 0;           ///< of the whole update, all ranks
  std::int64_t source_tokens = 0;       ///< likewise, EOS counted
  std::int64_t target_tokens = 0;       ///< likewise: what the loss is divided by
  std::vector<SentenceRef> references;  ///< of the whole update, in the order drawn

  /// This rank's micro-batches; there may be none.
  std::span<const HostBatch> micro_batches() const { return std::span(batches_).first(used_); }

 private:
  friend class UpdateBuilder;
  std::vector<HostBatch> batches_;
  std::size_t used_ = 0;
};

/// Makes one update after the other, epoch after epoch, from any cursor on: a pure function of
/// (data, settings, cursor). The same sentences, segmentations and ordinals whatever the ranks and
/// limits are: a token's ordinal counts the update's tokens on its side in the order drawn.
class UpdateBuilder {
 public:
  /// @throws UserError  there is nothing to train on, or `sample` is out of range for the model or
  ///                    a corpus lacks the text for it.
  UpdateBuilder(const TrainingData& data, const UpdateSettings& settings, Cursor start);
  UpdateBuilder(const UpdateBuilder&) = delete;
  UpdateBuilder& operator=(const UpdateBuilder&) = delete;

  /// Fills `out` with the next update.
  /// @throws UserError  a sentence does not fit into a micro-batch, or a corpus is damaged.
  void build(UpdateBatches& out);

 private:
  struct Side {
    const Subwords* subwords;
    SubwordEncoder encoder;
    std::vector<std::size_t> columns, text_columns;  // by corpus
    std::vector<std::int32_t> ids;                   // of the update, end to end
    std::vector<std::size_t> begins;                 // [sentences + 1]
  };
  Side make_side(const std::string& name, const Subwords& subwords) const;
  void start_epoch();
  void settle_cursor();
  void read(DrawRange draws, UpdateBatches& out);
  void fill(const MicroBatch& micro, HostBatch& batch) const;
  void append_ids(Side& side, std::int64_t epoch, std::int64_t draw, SentenceRef sentence,
                  std::vector<std::int32_t>& out) const;
  void target_lengths(const EpochPlan& plan, std::int64_t first, std::span<std::int32_t> lengths);

  TrainingData data_;
  UpdateSettings settings_;
  Cursor cursor_;
  Side source_, target_;
  std::optional<EpochPlan> plan_;
  std::vector<std::int32_t> scratch_;
  std::vector<PairLength> lengths_;
  Partition partition_;
};

/// "corpora/train.en line 17", for messages about a sentence.
std::string describe_sentence(const TrainingData& data, SentenceRef sentence);

}  // namespace octavo
