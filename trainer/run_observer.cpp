#include "trainer/run_observer.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "comm/last_words.h"

namespace octavo {

namespace {

double gigabytes(std::int64_t bytes) {
  return static_cast<double>(bytes) / 1e9;
}

std::string_view in_words(TrainingEnd end) {
  switch (end) {
    case TrainingEnd::interrupted:
      return "stopped as asked; start it again to go on";
    case TrainingEnd::stopped_early:
      return "stopped early: validation gets no better";
    case TrainingEnd::finished:
      break;
  }
  return "finished";
}

}  // namespace

RunObserver::RunObserver(const Setup& setup) : setup_(setup) {}

void RunObserver::started(const TrainingState& state, const MemoryPlan& plan) {
  spdlog::info(
      "[trainer] {} of {}; each takes {:.2f} GB (parameters {:.2f}, optimiser {:.2f}, activations "
      "{:.2f}, scratch {:.2f}, validation {:.2f}) for micro-batches of {} target tokens",
      counted(setup_.ranks, "rank"), counted(setup_.threads, "thread"), gigabytes(plan.total()),
      gigabytes(plan.parameters), gigabytes(plan.optimizer), gigabytes(plan.activations),
      gigabytes(plan.scratch), gigabytes(plan.validation), plan.max_tokens);
  first_update_ = state.update;
  metrics_ = std::make_unique<MetricsLog>(setup_.run, state.update);
  display_ = std::make_unique<ProgressDisplay>(setup_.style);
}

Progress RunObserver::progress(const TrainingState& state) const {
  Progress progress{.report = window_.report(state.seconds), .max_updates = setup_.max_updates};
  double share = 0;
  if (setup_.max_updates && *setup_.max_updates > 0) {
    share = static_cast<double>(state.update) / static_cast<double>(*setup_.max_updates);
  }
  if (setup_.max_minutes && *setup_.max_minutes > 0) {
    share = std::max(share, state.seconds / (60 * *setup_.max_minutes));
  }
  if (share > 0) progress.share = std::min(1.0, share);
  return progress;
}

void RunObserver::stepped(const StepReport& step, const TrainingState& state) {
  window_.add(step);
  const bool complete = step.update % setup_.report_every == 0;
  if (!complete) {
    if (display_->due()) display_->update(progress(state));
    return;
  }
  const Progress now = progress(state);
  metrics_->write(now.report);
  display_->report(now);
  window_.clear();
}

void RunObserver::validated(const ValidationResult& v, const TrainingState& state, bool best) {
  metrics_->write(ValidationReport{.update = state.update,
                                   .epoch = state.epoch,
                                   .seconds = state.seconds,
                                   .loss = v.loss,
                                   .nll = v.nll,
                                   .bleu = v.bleu,
                                   .best = best});
  const std::string bleu =
      v.bleu ? fmt::format(", BLEU {:.2f} of {}", *v.bleu, counted(v.bleu_lines, "line")) : "";
  spdlog::info("[validation] update {}: loss {:.3f}, perplexity {:.2f}{}{}", state.update, v.loss,
               std::exp(v.nll), bleu, best ? ", the best so far" : "");
  if (!v.bleu) return;
  spdlog::info("[validation]   BLEU      {}", v.bleu_signature);
  spdlog::info("[validation]   source    {}", v.sample_source);
  spdlog::info("[validation]   output    {}", v.sample_output);
  spdlog::info("[validation]   reference {}", v.sample_reference);
}

void RunObserver::saved(const std::filesystem::path& checkpoint) {
  spdlog::info("[trainer] saved {}", checkpoint.string());
}

void RunObserver::ended(TrainingEnd end, const TrainingState& state) {
  if (!window_.empty()) {
    const Progress now = progress(state);
    metrics_->write(now.report);
    display_->report(now);
    window_.clear();
  }
  display_.reset();
  const std::string text =
      fmt::format("[trainer] {}: {} in {:.1f} minutes; {}", in_words(end),
                  counted(state.update, "update"), state.seconds / 60, setup_.run.string());
  spdlog::info("{}", text);
  if (end == TrainingEnd::finished && state.update == first_update_) {
    spdlog::info(
        "[trainer] there was nothing left to do; to train on, raise trainer.max_updates, "
        "max_epochs "
        "or max_minutes");
  }
  if (end == TrainingEnd::interrupted) leave_note(text);
}

}  // namespace octavo
