#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/group.h"
#include "data/config.h"
#include "data/prefetch.h"
#include "data/prepared.h"
#include "eval/bleu.h"
#include "trainer/config.h"
#include "trainer/planned_translation.h"
#include "trainer/task.h"
#include "trainer/translation_validation.h"
#include "translate/config.h"

namespace octavo {

/// Training a Transformer on sentence pairs.
class TranslationTask final : public Task {
 public:
  struct Setup {
    const DataConfig& data;
    const ModelConfig& model;
    const TrainerConfig& trainer;
    const SearchConfig& search;
    const BleuSettings& bleu;
    int threads;
  };
  /// Opens the prepared data. `group` must outlive the task.
  /// @throws UserError  it was not prepared with these settings; model and vocabulary don't match.
  TranslationTask(const Setup& setup, Group& group);

  const PreparedData& data() const { return data_; }

  const PlannedTranslation& planned() const override { return planned_; }
  void start(const Start& start) override;
  const UpdateWork& next() override;
  void run(const Pass& pass, std::int64_t i, double scale, Tensor sums,
           const GroupDone& done) override;
  std::string name_sentences() const override;
  ValidationResult validate(const Parameters& parameters) override;
  std::string validation_name() const override;

 private:
  bool validates() const { return planned_.validation_memory().activations > 0; }
  TranslationValidation::Setup validation_setup() const;

  DataConfig data_config_;
  TrainerConfig config_;
  SearchConfig search_;
  BleuSettings bleu_;
  int threads_;
  Group& group_;
  PreparedData data_;
  PlannedTranslation planned_;
  Transformer::Saved saved_;
  std::unique_ptr<Prefetcher> prefetcher_;
  UpdateWork work_;
  double waited_ = 0;  ///< seconds, by the prefetcher's account
  const UpdateBatches* batches_ = nullptr;
  std::unique_ptr<TranslationValidation>
      validation_;  ///< null without data.dev, and before start()
};

}  // namespace octavo
