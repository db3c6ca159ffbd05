#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/group.h"
#include "core/arena.h"
#include "core/context.h"
#include "data/corpus.h"
#include "data/subwords.h"
#include "eval/bleu.h"
#include "model/transformer.h"
#include "trainer/config.h"
#include "trainer/task.h"
#include "translate/batch_translator.h"
#include "translate/config.h"

namespace octavo {

/// Loss and BLEU of held-out pairs: every rank takes its share of them, statistics are summed.
class TranslationValidation {
 public:
  struct Setup {
    const Transformer& model;
    std::int32_t source_eos;
    const Subwords& target_subwords;
    const Corpus& dev;  ///< must outlive this, like model and subwords
    const TrainerConfig& trainer;
    const SearchConfig& search;
    const BleuSettings& bleu;
    int threads;
  };
  /// Plans and takes its memory, apart from the trainer's. `group` must outlive this.
  TranslationValidation(const Setup& setup, Group& group);

  /// All ranks call it together.
  ValidationResult run(const Parameters& parameters);

  /// Activations and scratch.
  std::int64_t bytes() const { return memory_.activations + memory_.scratch; }

 private:
  struct Pair {
    std::int64_t row;                          ///< of dev
    std::vector<std::int32_t> source, target;  ///< EOS at the end
  };
  void take_share(std::int32_t source_eos);
  void add_loss(const Pass& pass, ValidationResult& result);
  void add_bleu(const Pass& pass, ValidationResult& result);
  WorkMemory loss_memory() const;
  std::size_t batch_end(std::size_t begin) const;

  const Transformer& model_;
  const Subwords& subwords_;
  const Corpus& dev_;
  Group& group_;
  double label_smoothing_;
  std::int64_t bleu_sentences_;
  BleuSettings bleu_;
  DType compute_;
  int threads_;
  BatchTranslator translator_;
  std::vector<Pair> share_;  ///< this rank's pairs, by length
  WorkMemory memory_;
  std::unique_ptr<Context> ctx_;
  std::unique_ptr<Arena> arena_;
  std::int64_t runs_ = 0;  ///< chooses the sample
};

}  // namespace octavo
