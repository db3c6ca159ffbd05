#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "comm/config.h"
#include "data/config.h"
#include "eval/bleu.h"
#include "model/config.h"
#include "trainer/config.h"
#include "translate/config.h"

namespace octavo {

/// Everything one experiment is: what a YAML file of this folder says.
struct Experiment {
  DataConfig data;
  ModelConfig model;
  TrainerConfig trainer;
  SearchConfig translate;
  BleuSettings bleu;
  CommConfig comm;

  template <typename Visitor>
  void describe(Visitor& v) {
    v.section("data", data, "what is trained on, and how text becomes ids");
    v.section("model", model, "the Transformer");
    v.section("trainer", trainer, "how it is trained");
    v.section("translate", translate, "search, in validation and as default of 'octavo translate'",
              v.may_change());
    v.section("bleu", bleu, "BLEU in validation", v.may_change());
    v.section("comm", comm, "how ranks talk to each other", v.may_change());
  }
};

/// Reads a file and checks what ties its sections together.
/// @param overrides  "trainer.max_updates=1000", as given to --set.
/// @throws UserError  file, line, what is wrong and the nearest valid name.
Experiment read_experiment(const std::filesystem::path& file,
                           std::span<const std::string> overrides);

/// Refuses to go on with a run whose fixed settings differ.
/// @param saved_yaml  settings.yaml of the checkpoint at `checkpoint`.
/// @throws UserError  naming each setting, its value then and now.
void check_resumable(const Experiment& now, const std::string& saved_yaml,
                     const std::filesystem::path& checkpoint);

}  // namespace octavo
