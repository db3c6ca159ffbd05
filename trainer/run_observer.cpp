#include "trainer/run_observer.h"

#include <spdlog/spdlog.h>

#include <cmath>

namespace octavo {

RunObserver::RunObserver(const Setup& setup) : setup_(setup) {}

void RunObserver::started(const TrainingState& state, const MemoryPlan& plan) {
  spdlog::info(
      "[trainer] {} ranks x {} threads; memory of a rank: {:.2f} GB planned (parameters {:.2f}, "
      "optimiser {:.2f}, activations {:.2f}, scratch {:.2f}, validation {:.2f}); micro-batches of "
      "{} target tokens; update {}",
      setup_.ranks, setup_.threads, static_cast<double>(plan.total()) / 1e9,
      static_cast<double>(plan.parameters) / 1e9, static_cast<double>(plan.optimizer) / 1e9,
      static_cast<double>(plan.activations) / 1e9, static_cast<double>(plan.scratch) / 1e9,
      static_cast<double>(plan.validation) / 1e9, plan.max_tokens, state.update);
}

void RunObserver::stepped(const StepReport& r, const TrainingState& state) {
  if (r.update % setup_.report_every != 0) return;
  spdlog::info(
      "[trainer] update {} epoch {} loss {:.4f} nll {:.4f} rate {:.3g} norm {:.3f} tokens/s {:.0f} "
      "{:.0f} wait {:.1f}% {:.1f}% seconds {:.1f}",
      r.update, r.epoch + 1, r.loss, r.nll, r.rate, r.norm,
      static_cast<double>(r.source_tokens) / r.seconds,
      static_cast<double>(r.target_tokens) / r.seconds, 100 * r.data_seconds / r.seconds,
      100 * r.collective_seconds / r.seconds, state.seconds);
}

void RunObserver::validated(const ValidationResult& v, const TrainingState& state, bool best) {
  spdlog::info("[trainer] validation at update {}: loss {:.4f}, perplexity {:.3f}{}{}",
               state.update, v.loss, std::exp(v.nll),
               v.bleu ? fmt::format(", BLEU {:.2f} ({})", *v.bleu, v.bleu_signature) : "",
               best ? ", best so far" : "");
  if (v.bleu) {
    spdlog::info("[trainer] e.g. {}\n  output    {}\n  reference {}", v.sample_source,
                 v.sample_output, v.sample_reference);
  }
}

void RunObserver::saved(const std::filesystem::path& checkpoint) {
  spdlog::info("[trainer] saved {}", checkpoint.string());
}

void RunObserver::ended(TrainingEnd end, const TrainingState& state) {
  spdlog::info("[trainer] {} after {} updates, {:.1f} minutes; {}",
               end == TrainingEnd::interrupted     ? "interrupted"
               : end == TrainingEnd::stopped_early ? "stopped early"
                                                   : "finished",
               state.update, state.seconds / 60, setup_.run.string());
}

}  // namespace octavo
