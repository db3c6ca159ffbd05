#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

namespace octavo {

/// What training did since the last report: sums and means over these updates and over all ranks.
/// describe() lists what metrics.jsonl and TensorBoard show, with units; docs/formats/metrics.md.
struct TrainingReport {
  std::int64_t update = 0;  ///< the last one, from 1
  std::int64_t epoch = 0;   ///< of that update, from 0
  double seconds = 0;       ///< of training so far, over all starts of the run
  double loss = 0;          ///< per target token, with label smoothing
  double nll = 0;           ///< -log p per target token, without
  double rate = 0;          ///< of the last update
  double gradient_norm = 0;
  std::int64_t updates = 0;  ///< in this report
  std::int64_t skipped = 0;  ///< of these, because the gradient was not finite
  double source_tokens_per_second = 0, target_tokens_per_second = 0;
  double sentences_per_second = 0, updates_per_second = 0;
  double data_wait = 0;         ///< share of the time, mean over ranks
  double collective_wait = 0;   ///< the same
  double flop_utilisation = 0;  ///< FLOPs per second as a share of the measured peak

  double perplexity() const { return std::exp(nll); }

  template <typename Visitor>
  void describe(Visitor& v) const {
    v.metric("update", update, "updates");
    v.metric("epoch", epoch, "epochs, from 0");
    v.metric("seconds", seconds, "seconds of training");
    v.metric("loss", loss, "nats per target token");
    v.metric("nll", nll, "nats per target token");
    v.metric("perplexity", perplexity(), "1");
    v.metric("rate", rate, "1");
    v.metric("gradient_norm", gradient_norm, "loss per weight");
    v.metric("updates", updates, "updates");
    v.metric("skipped", skipped, "updates");
    v.metric("source_tokens_per_second", source_tokens_per_second, "tokens per second");
    v.metric("target_tokens_per_second", target_tokens_per_second, "tokens per second");
    v.metric("tokens_per_second", source_tokens_per_second + target_tokens_per_second,
             "tokens per second");
    v.metric("sentences_per_second", sentences_per_second, "pairs per second");
    v.metric("updates_per_second", updates_per_second, "updates per second");
    v.metric("data_wait", data_wait, "share of the time");
    v.metric("collective_wait", collective_wait, "share of the time");
    v.metric("flop_utilisation", flop_utilisation, "share of the peak");
  }
};

/// What a validation found.
struct ValidationReport {
  std::int64_t update = 0;
  std::int64_t epoch = 0;
  double seconds = 0;  ///< of training so far
  double loss = 0, nll = 0;
  std::optional<double> bleu = {};
  bool best = false;  ///< the best of the run so far

  double perplexity() const { return std::exp(nll); }

  template <typename Visitor>
  void describe(Visitor& v) const {
    v.metric("update", update, "updates");
    v.metric("epoch", epoch, "epochs, from 0");
    v.metric("seconds", seconds, "seconds of training");
    v.metric("loss", loss, "nats per target token");
    v.metric("nll", nll, "nats per target token");
    v.metric("perplexity", perplexity(), "1");
    if (bleu) v.metric("bleu", *bleu, "0 to 100");
    v.metric("best", best, "true or false");
  }
};

}  // namespace octavo
