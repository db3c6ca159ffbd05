#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/dtype.h"
#include "core/settings.h"
#include "model/layers/stack.h"
#include "trainer/run_folder.h"
#include "trainer/schedule.h"

namespace octavo {

/// What products compute in. float64 is for tests of gradients.
enum class Precision : unsigned char { float32, bf16, float64 };

constexpr DType dtype_of(Precision precision) {
  switch (precision) {
    case Precision::bf16:
      return DType::bf16;
    case Precision::float64:
      return DType::f64;
    case Precision::float32:
      break;
  }
  return DType::f32;
}

/// By what the best checkpoint is chosen and early stopping decides.
enum class ValidationMetric : unsigned char { bleu, nll };

template <>
struct EnumNames<Precision> {
  static constexpr std::array<std::pair<Precision, std::string_view>, 3> values{
      {{Precision::float32, "float32"},
       {Precision::bf16, "bf16"},
       {Precision::float64, "float64"}}};
};
template <>
struct EnumNames<ValidationMetric> {
  static constexpr std::array<std::pair<ValidationMetric, std::string_view>, 2> values{
      {{ValidationMetric::bleu, "bleu"}, {ValidationMetric::nll, "nll"}}};
};
template <>
struct EnumNames<Recompute> {
  static constexpr std::array<std::pair<Recompute, std::string_view>, 2> values{
      {{Recompute::none, "none"}, {Recompute::layer, "layer"}}};
};

/// Adam with decoupled weight decay (AdamW); without decay it is plain Adam.
struct OptimizerConfig {
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-9;
  double weight_decay = 0;
  std::optional<double> clip_norm;

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("beta1", beta1, "decay of the gradient's average", v.at_least(0), v.below(1));
    v.setting("beta2", beta2, "decay of the squared gradient's average", v.at_least(0), v.below(1));
    v.setting("epsilon", epsilon, "added to the root of the squared gradient's average",
              v.at_least(1e-30));
    v.setting("weight_decay", weight_decay, "decoupled (AdamW), of matrices; 0: plain Adam",
              v.at_least(0));
    v.setting("clip_norm", clip_norm, "largest global gradient norm let through", v.above(0));
  }
};

struct ValidationConfig {
  std::optional<std::int64_t> every_updates;
  std::optional<double> every_minutes;
  ValidationMetric metric = ValidationMetric::bleu;
  std::optional<std::int64_t> bleu_sentences;
  std::optional<std::int64_t> patience;

  /// Whether there is any.
  bool on() const { return every_updates || every_minutes; }

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("every_updates", every_updates, "updates between validations", v.at_least(1));
    v.setting("every_minutes", every_minutes, "minutes between validations", v.above(0));
    v.setting("metric", metric, "chooses the best checkpoint and stops early");
    v.setting("bleu_sentences", bleu_sentences,
              "only the first so many lines are decoded for BLEU; 0: none", v.at_least(0),
              v.empty_is("all"));
    v.setting("patience", patience, "stop after so many validations without a new best",
              v.at_least(1));
    v.check(!patience || on(), "patience",
            "there is no validation: set every_updates or every_minutes, or leave it out");
    v.check(metric != ValidationMetric::bleu || bleu_sentences != 0, "metric",
            "without decoding (bleu_sentences: 0) it must be nll");
  }
};

struct CheckpointConfig {
  std::optional<std::int64_t> every_updates;
  std::optional<double> every_minutes;
  RetentionConfig retention;

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("every_updates", every_updates, "updates between checkpoints", v.at_least(1));
    v.setting("every_minutes", every_minutes, "minutes between checkpoints", v.above(0));
    retention.describe(v);
  }
};

/// How a model is trained. What a resumed run may change is marked so.
struct TrainerConfig {
  std::string output;
  std::optional<std::string> init_from;
  std::int64_t seed = 1;
  Precision precision = Precision::float32;
  std::int64_t tokens_per_update = 25000;
  std::optional<std::int64_t> max_tokens;
  std::optional<double> memory_gigabytes;
  Recompute recompute = Recompute::none;
  std::optional<std::int64_t> max_updates;
  std::optional<std::int64_t> max_epochs;
  std::optional<double> max_minutes;
  double label_smoothing = 0.1;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  std::optional<double> average_decay;
  std::int64_t max_skipped_updates = 10;
  ValidationConfig validation;
  CheckpointConfig checkpoints;
  std::int64_t report_every = 100;

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("output", output, "the run's folder", v.required(), v.may_change());
    v.setting("init_from", init_from, "a checkpoint whose weights a new run starts from");
    v.setting("seed", seed, "of initial weights, order of sentences and dropout", v.at_least(0));
    v.setting("precision", precision, "of products; weights and sums stay float32");
    v.setting("tokens_per_update", tokens_per_update,
              "target tokens, EOS counted, that an update is made of, over all ranks",
              v.at_least(1));
    v.setting("max_tokens", max_tokens,
              "target tokens of a micro-batch on one rank; auto: what memory allows",
              v.closed(64, 1 << 18), v.empty_is("auto"), v.may_change());
    v.setting("memory_gigabytes", memory_gigabytes,
              "what one rank may use; auto: its share of what is free", v.above(0), v.at_most(1e6),
              v.empty_is("auto"), v.may_change());
    v.setting("recompute", recompute, "what backward rebuilds instead of keeping", v.may_change());
    v.setting("max_updates", max_updates, "stop after so many updates", v.at_least(0),
              v.may_change());
    v.setting("max_epochs", max_epochs, "stop after so many epochs", v.at_least(1), v.may_change());
    v.setting("max_minutes", max_minutes,
              "stop after so many minutes of training; validation does not count", v.at_least(0),
              v.may_change());
    v.setting("label_smoothing", label_smoothing, "probability given to all pieces alike",
              v.at_least(0), v.below(1));
    v.section("optimizer", optimizer, "Adam");
    v.section("schedule", schedule, "the learning rate over updates");
    v.setting("average_decay", average_decay,
              "decay per update of the running average of weights (EMA), e.g. 0.999", v.open(0, 1));
    v.setting("max_skipped_updates", max_skipped_updates,
              "stop after so many updates in a row with an infinite gradient", v.at_least(1),
              v.may_change());
    v.section("validation", validation, "loss and BLEU on data.dev", v.may_change());
    v.section("checkpoints", checkpoints, "what is saved and kept", v.may_change());
    v.setting("report_every", report_every, "updates between lines of the log", v.at_least(1),
              v.may_change());
    v.check(max_updates || max_epochs || max_minutes, "max_updates",
            "set it, max_epochs or max_minutes, or training would never end");
  }
};

}  // namespace octavo
