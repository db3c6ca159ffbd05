#include "trainer/trainer.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "model/ops/elementwise.h"

namespace octavo {

namespace {

std::vector<GradientSlice> slices_of(const ParameterTable& table) {
  std::vector<GradientSlice> slices;
  for (int group = table.groups(); group-- > 0;) {  // backward finishes the last group first
    const ParameterTable::Slice s = table.group_slice(group);
    if (s.end > s.begin) slices.push_back({s.begin, s.end});
  }
  return slices;
}

/// All ranks measure at the same time, as they will train.
MachineLimits measure_together(Group& group, int threads, DType type) {
  group.barrier();
  return measure_limits(threads, type);
}

}  // namespace

Trainer::Trainer(const Setup& setup, Task& task, Group& group, const StopSignals& signals,
                 TrainingObserver& observer)
    : config_(setup.config),
      files_(setup.files),
      task_(task),
      group_(group),
      signals_(signals),
      observer_(observer),
      schedule_(setup.config.schedule, setup.model_width),
      plan_(agree_on_plan(setup.threads, setup.ranks_on_host)),
      ctx_(Device::cpu, setup.threads, plan_.scratch),
      limits_(measure_together(group, setup.threads, dtype_of(config_.precision))),
      peak_flops_(group.sum(limits_.flops)),
      parameters_(task.planned().parameter_table(), ctx_, dtype_of(config_.precision), true),
      optimizer_(config_.optimizer, config_.average_decay, ctx_, parameters_),
      activations_(plan_.activations),
      buckets_(group, parameters_.flat_gradient(), slices_of(task.planned().parameter_table()),
               setup.bucket_bytes),
      sums_(2, 0.0) {
  if (schedule_.needs_progress() && !config_.max_updates && !config_.max_minutes) {
    throw UserError(
        "trainer.schedule.kind falls to the end of training: set trainer.max_updates or "
        "trainer.max_minutes, so that the end is known");
  }
  if (config_.average_decay && config_.validation.on()) {
    averaged_ = std::make_unique<Parameters>(task.planned().parameter_table(), ctx_,
                                             dtype_of(config_.precision), false);
  }
  restore_from_newest();
  ctx_.set_recorder(&profile_);
}

/// The largest micro-batch that fits on every rank, but none larger than the run has had so far:
/// what memory is free at the moment must not change how updates are cut.
MemoryPlan Trainer::agree_on_plan(int threads, int ranks_on_host) const {
  const PlannedWork& work = task_.planned();
  MemoryPlan plan = choose_plan(work, config_, threads, memory_budget(config_, ranks_on_host));
  if (config_.max_tokens) return plan;
  std::vector<std::int64_t> all(static_cast<std::size_t>(group_.size()));
  group_.all_gather(plan.max_tokens, std::span(all));
  std::int64_t tokens = *std::min_element(all.begin(), all.end());
  const std::int64_t former = group_.sum(group_.rank() == 0 ? former_max_tokens() : 0);
  if (former > tokens && group_.rank() == 0) {
    spdlog::warn(
        "[trainer] micro-batches of {} target tokens no longer fit into memory: {} from now on, so "
        "sums are rounded in another order than before",
        former, tokens);
  }
  if (former > 0) tokens = std::min(tokens, former);
  if (tokens != plan.max_tokens) plan = plan_memory(work, config_, threads, tokens);
  return plan;
}

double Trainer::elapsed() const {
  return seconds_before_ + std::chrono::duration<double>(Clock::now() - began_).count();
}

double Trainer::progress() const {
  double share = 0;
  if (config_.max_updates) {
    share = static_cast<double>(state_.update + 1) /
            static_cast<double>(std::max<std::int64_t>(1, *config_.max_updates));
  }
  if (config_.max_minutes) {
    share = std::max(share, state_.seconds / std::max(1e-9, 60 * *config_.max_minutes));
  }
  return std::clamp(share, 0.0, 1.0);
}

bool Trainer::finished() const {
  return (config_.max_updates && state_.update >= *config_.max_updates) ||
         (config_.max_epochs && state_.epoch >= *config_.max_epochs) ||
         (config_.max_minutes && state_.seconds >= 60 * *config_.max_minutes);
}

bool Trainer::out_of_patience() const {
  const auto& patience = config_.validation.patience;
  return patience && state_.validations_without_gain >= *patience;
}

TrainingEnd Trainer::run() {
  began_ = Clock::now();
  task_.start({.epoch = state_.epoch,
               .update_in_epoch = state_.epoch_update,
               .max_tokens = plan_.max_tokens});
  if (group_.rank() == 0) observer_.started(state_, plan_);
  if (state_.validation_missing) {
    validate();
    save();
  }
  while (!finished() && !out_of_patience()) {
    const StepReport report = step(task_.next());
    if (group_.rank() == 0) observer_.stepped(report, state_);
    count_skipped(report);
    state_.validation_missing = validation_due();
    if (stop_) {
      save();
      return TrainingEnd::interrupted;
    }
    if (state_.validation_missing) validate();
    if (checkpoint_due()) save();
  }
  save();
  return out_of_patience() ? TrainingEnd::stopped_early : TrainingEnd::finished;
}

StepReport Trainer::step(const UpdateWork& work) {
  const Clock::time_point begin = Clock::now();
  const std::int64_t flops_before = profile_.flops();
  accumulate(work);
  const BucketReport collective = buckets_.wait();  // gradients: summed over ranks
  const double rate = schedule_.rate(state_.update + 1, progress());
  const StepOutcome outcome = optimizer_.step(ctx_, rate);  // the same on all ranks

  const bool first = group_.rank() == 0;
  double values[] = {sums_[0],
                     sums_[1],
                     first ? elapsed() : 0.0,
                     work.wait_seconds,
                     collective.exposed_seconds,
                     static_cast<double>(profile_.flops() - flops_before)};
  stop_ = reduce_control(group_, values, signals_.requested());
  ++state_.update;
  state_.epoch = work.next_epoch;
  state_.epoch_update = work.next_update;
  state_.source_tokens += work.source_tokens;
  state_.target_tokens += work.target_tokens;
  state_.seconds = values[2];
  const auto units = static_cast<double>(work.units), ranks = static_cast<double>(group_.size());
  const double seconds =
      std::chrono::duration<double>(Clock::now() - begin).count() + work.wait_seconds;
  ++times_.updates;
  times_.seconds += seconds;
  times_.data_seconds += work.wait_seconds;
  times_.collective_seconds += collective.exposed_seconds;
  return {.update = state_.update,
          .epoch = work.epoch,
          .loss = values[0] / units,
          .nll = values[1] / units,
          .rate = rate,
          .norm = outcome.norm,
          .finite = outcome.finite,
          .source_tokens = work.source_tokens,
          .target_tokens = work.target_tokens,
          .sentences = work.sentences,
          .seconds = seconds,
          .data_seconds = values[3] / ranks,
          .collective_seconds = values[4] / ranks,
          .flop_utilisation = values[5] / (seconds * peak_flops_)};
}

void Trainer::accumulate(const UpdateWork& work) {
  parameters_.zero_gradients(ctx_);
  std::fill(sums_.begin(), sums_.end(), 0.0);
  const Tensor sums(sums_.data(), {2}, DType::f64);
  const Pass pass{ctx_,
                  parameters_,
                  activations_,
                  {.training = true,
                   .seed = static_cast<std::uint64_t>(config_.seed),
                   .update = static_cast<std::uint64_t>(state_.update)}};
  for (std::int64_t i = 0; i < work.micro_batches; ++i) {
    const ArenaScope scope(activations_);
    const bool last = i + 1 == work.micro_batches;
    task_.run(pass, i, 1.0 / static_cast<double>(work.units), sums, [&](int group) {
      const ParameterTable::Slice slice = parameters_.table().group_slice(group);
      if (last && slice.end > slice.begin) buckets_.ready(slice.begin, slice.end);
    });
  }
}

void Trainer::count_skipped(const StepReport& report) {
  if (report.finite) {
    state_.skipped_in_a_row = 0;
    return;
  }
  check_weights();
  ++state_.skipped_updates;
  ++state_.skipped_in_a_row;
  const std::string where = fmt::format("update {} (loss {:.4g}; {})", report.update, report.loss,
                                        task_.name_sentences());
  if (group_.rank() == 0) {
    spdlog::warn("[trainer] the gradient of {} is not finite: skipped on all ranks", where);
  }
  if (state_.skipped_in_a_row < config_.max_skipped_updates) return;
  throw UserError(fmt::format(
      "{} updates in a row had a gradient that is not finite, the last was {}. The weights are as "
      "before them. Look at these sentences, lower trainer.schedule.peak_rate or set "
      "trainer.optimizer.clip_norm",
      state_.skipped_in_a_row, where));
}

/// A rate that is far too high breaks the weights themselves: no later update could mend them, and
/// saved they would only push out checkpoints that are good.
void Trainer::check_weights() {
  if (optimizer_.weights_are_finite(ctx_)) return;
  throw UserError(
      fmt::format("the weights are no longer finite after update {}, so they are not saved. Lower "
                  "trainer.schedule.peak_rate (or factor), or set trainer.optimizer.clip_norm, and "
                  "start again: "
                  "it goes on from the newest checkpoint, if there is one",
                  state_.update));
}

bool Trainer::validation_due() const {
  const ValidationConfig& v = config_.validation;
  return (v.on() && finished()) || (v.every_updates && state_.update % *v.every_updates == 0) ||
         (v.every_minutes && state_.seconds - state_.validation_seconds >= 60 * *v.every_minutes);
}

bool Trainer::checkpoint_due() const {
  if (state_.skipped_in_a_row > 0) return false;  // nothing new, and perhaps nothing good
  const CheckpointConfig& c = config_.checkpoints;
  return (c.every_updates && state_.update % *c.every_updates == 0) ||
         (c.every_minutes && state_.seconds - saved_seconds_ >= 60 * *c.every_minutes) ||
         best_unsaved_;
}

std::string Trainer::validation_name() const {
  return fmt::format("{} of {}",
                     config_.validation.metric == ValidationMetric::bleu ? "bleu" : "nll",
                     task_.validation_name());
}

void Trainer::validate() {
  const double before = elapsed();
  const Parameters* weights = &parameters_;
  if (averaged_ != nullptr) {
    convert(ctx_, optimizer_.average(), averaged_->flat_master());
    averaged_->refresh_weights(ctx_);
    weights = averaged_.get();
  }
  const ValidationResult result = task_.validate(*weights);
  const bool by_bleu = config_.validation.metric == ValidationMetric::bleu;
  const double score = by_bleu ? result.bleu.value_or(std::nan("")) : -result.nll;
  const bool best = std::isfinite(score) && (!state_.best_score || score > *state_.best_score);
  if (best) {
    state_.best_score = score;
    state_.best_update = state_.update;
    best_unsaved_ = true;
    state_.validations_without_gain = 0;
  } else {
    ++state_.validations_without_gain;
  }
  validation_unsaved_ = true;
  state_.validated_as = validation_name();
  state_.validation_missing = false;
  state_.validation_seconds = state_.seconds;
  seconds_before_ -= elapsed() - before;
  if (group_.rank() == 0) observer_.validated(result, state_, best);
}

}  // namespace octavo
