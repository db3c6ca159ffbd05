#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/group.h"
#include "core/arena.h"
#include "core/context.h"
#include "data/corpus.h"
#include "data/held_out.h"
#include "data/subwords.h"
#include "eval/bleu.h"
#include "model/transformer.h"
#include "trainer/config.h"
#include "trainer/task.h"
#include "translate/batch_translator.h"
#include "translate/config.h"
#include "translate/work_memory.h"

namespace octavo {

/// Loss and BLEU of held-out pairs: every rank takes its share of them, statistics are summed.
class TranslationValidation {
 public:
  struct Setup {
    const Transformer& model;
    const Subwords& source;
    const Subwords& target;
    const Corpus& dev;        ///< must outlive this, like model and subwords
    std::int64_t max_length;  ///< no sentence of dev is longer
    const TrainerConfig& trainer;
    const SearchConfig& search;
    const BleuSettings& bleu;
    int threads;
    WorkMemory memory;  ///< what plan() says
  };
  /// What such a validation takes, whatever its text.
  struct PlanSetup {
    const Transformer& model;
    std::int64_t max_length;
    const TrainerConfig& trainer;
    const SearchConfig& search;
    int threads;
  };
  static WorkMemory plan(const PlanSetup& setup);
  /// The text, how it is searched and scored.
  static std::string name(const Setup& setup);

  /// Takes its memory, apart from the trainer's. `group` must outlive this.
  TranslationValidation(const Setup& setup, Group& group);

  /// All ranks call it together.
  ValidationResult run(const Parameters& parameters);

 private:
  void add_loss(const Pass& pass, ValidationResult& result) const;
  void add_bleu(const Pass& pass, ValidationResult& result) const;

  const Transformer& model_;
  const Subwords& source_;
  const Subwords& target_;
  const Corpus& dev_;
  Group& group_;
  double label_smoothing_;
  std::int64_t bleu_sentences_;
  BleuSettings bleu_;
  BatchTranslator translator_;
  std::vector<HeldOutBatch> share_;  ///< this rank's pairs
  Context ctx_;
  Arena arena_;
  std::int64_t runs_ = 0;  ///< chooses the sample
};

}  // namespace octavo
