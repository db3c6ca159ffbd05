#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/context.h"
#include "model/layers/pass.h"
#include "model/parameters.h"
#include "trainer/planned_work.h"

namespace octavo {

/// One update as one rank sees it.
struct UpdateWork {
  std::int64_t epoch = 0;          ///< from 0
  std::int64_t next_epoch = 0;     ///< where to go on after it
  std::int64_t next_update = 0;    ///< of that epoch, from 0
  std::int64_t micro_batches = 0;  ///< of this rank; may be none
  // Of the whole update, over all ranks:
  std::int64_t units = 0;  ///< what the loss is divided by: target tokens, EOS counted
  std::int64_t source_tokens = 0, target_tokens = 0;
  std::int64_t sentences = 0;
  double wait_seconds = 0;  ///< that the trainer waited for this data
};

/// What validation found, over all ranks.
struct ValidationResult {
  double loss = 0;             ///< the smoothed loss per target token
  double nll = 0;              ///< -log p per target token, without smoothing
  std::optional<double> bleu;  ///< 0 to 100, if anything was decoded
  std::string bleu_signature;
  std::int64_t bleu_lines = 0;
  std::string sample_source, sample_output, sample_reference;  ///< one line to look at
};

/// What is trained: it knows the data and the model. The trainer knows only this.
class Task {
 public:
  virtual ~Task() = default;

  /// What memory is planned for.
  virtual const PlannedWork& planned() const = 0;

  /// The next update's work; waits for it. Valid until the next call.
  /// @throws whatever reading or planning the data threw.
  virtual const UpdateWork& next() = 0;
  /// Forward and backward of micro-batch i of the work that next() returned last.
  /// @param scale  of the gradient: 1 / units.
  /// @param sums   f64 [2], added to: loss, -log p(label); not scaled.
  virtual void run(const Pass& pass, std::int64_t i, double scale, Tensor sums,
                   const GroupDone& done) = 0;
  /// Names the present update's sentences, for a message: files and lines of a few.
  virtual std::string name_sentences() const = 0;

  /// Starts the stream of updates at this place; call once, before next().
  struct Start {
    std::int64_t epoch = 0, update_in_epoch = 0;
    std::int64_t max_tokens;  ///< target tokens of a micro-batch
  };
  virtual void start(const Start& start) = 0;

  /// Loss and BLEU of held-out text, with these weights. All ranks call it together.
  virtual ValidationResult validate(const Parameters& parameters) = 0;
  /// Names what validate() measures: results under another name can't be compared. Empty if there
  /// is nothing to validate on.
  virtual std::string validation_name() const = 0;
};

}  // namespace octavo
