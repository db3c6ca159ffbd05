// How the trainer saves and restores itself; the loop is in trainer.cpp.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "core/error.h"
#include "core/file.h"
#include "core/version.h"
#include "model/ops/elementwise.h"
#include "trainer/checkpoint.h"
#include "trainer/model_settings.h"
#include "trainer/parameter_files.h"
#include "trainer/run_folder.h"
#include "trainer/trainer.h"

namespace octavo {

namespace fs = std::filesystem;

namespace {

std::span<std::byte> bytes_of_tensor(const Tensor& t) {
  return {static_cast<std::byte*>(t.raw()), static_cast<std::size_t>(t.bytes())};
}

void append(std::vector<NamedTensor>& to, std::vector<NamedTensor> more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// Whether the present update is that of the best validation.
bool is_best(const TrainingState& state) {
  return state.best_score && state.best_update == state.update;
}

/// The rows of an embedding mean the pieces of the vocabulary that it was trained with.
void check_vocabulary(const Checkpoint& from, const std::string& name, const std::string& text) {
  const auto file = from.files().find(name);
  if (file != from.files().end() && file->second.hash == hash_bytes(text)) return;
  throw UserError(
      fmt::format("trainer.init_from: {} was made with another vocabulary: its {} {}. Prepare the "
                  "text with the "
                  "model of that checkpoint (data.subwords.model or source_model and target_model)",
                  from.path().string(), name,
                  file == from.files().end() ? "is not there" : "differs from this run's"));
}

/// Weights of one shape mean different things with, say, another number of heads.
void check_model(const Checkpoint& from, const std::string& settings) {
  const std::string key =
      different_model_setting(settings_of(from), parse_config(settings, "this run's settings"));
  if (key.empty()) return;
  throw UserError(
      fmt::format("trainer.init_from: {} was trained with another {}. Set it as its settings.yaml "
                  "has it: weights mean something else otherwise",
                  from.path().string(), key));
}

/// Makes best.json name the checkpoint of the present update.
void point_to_best(const TrainerConfig& config, const TrainingState& state) {
  const bool by_bleu = config.validation.metric == ValidationMetric::bleu;
  write_best(config.output, {.update = state.update,
                             .metric = by_bleu ? "bleu" : "nll",
                             .score = by_bleu ? *state.best_score : -*state.best_score});
}

}  // namespace

std::int64_t Trainer::former_max_tokens() const {
  const std::vector<StepCheckpoint> there = list_checkpoints(config_.output);
  return there.empty() ? 0 : Checkpoint(there.back().path).state().automatic_max_tokens;
}

void Trainer::restore_from_newest() {
  const fs::path run = config_.output;
  state_.seed = static_cast<std::uint64_t>(config_.seed);
  state_.hashes = files_.hashes;
  parameters_.initialise(ctx_, state_.seed);
  if (group_.rank() == 0) {
    std::error_code failed;
    fs::create_directories(checkpoints_folder(run), failed);
    if (failed) throw UserError(system_reason(run.string(), failed.value()));
    remove_leftovers(checkpoints_folder(run));
    warn_of_incomplete(run);
    const std::vector<StepCheckpoint> there = list_checkpoints(run);
    if (!there.empty()) {
      restore(there.back().path);
      // A writer killed behind the checkpoint has left best.json as it was.
      if (is_best(state_)) point_to_best(config_, state_);
    } else if (config_.init_from) {
      load_initial_weights();
    }
    if (there.empty()) optimizer_.start_average(ctx_);
  }
  send_from_rank_0();
  optimizer_.set_count(state_.update);
  parameters_.refresh_weights(ctx_);
  state_.automatic_max_tokens = config_.max_tokens ? 0 : plan_.max_tokens;
  seconds_before_ = saved_seconds_ = state_.seconds;
  saved_update_ = state_.update > 0 ? state_.update : -1;
}

void Trainer::restore(const fs::path& folder) {
  const Checkpoint checkpoint(folder);
  const ParameterTable& table = parameters_.table();
  state_ = checkpoint.state();
  check_hashes(folder, state_.hashes, files_.hashes);
  load_parameters(table, checkpoint.tensors(kWeightsFile), parameters_.flat_master());
  const SafetensorsFile moments = checkpoint.tensors(kOptimizerFile);
  load_parameters(table, moments, optimizer_.first_moment(), kFirstMoment);
  load_parameters(table, moments, optimizer_.second_moment(), kSecondMoment);
  if (optimizer_.average().present()) {
    load_parameters(table, checkpoint.tensors(kEmaFile), optimizer_.average());
  }
  spdlog::info("[trainer] goes on from {}", folder.string());
  if (state_.best_score && state_.validated_as != validation_name()) {
    spdlog::warn(
        "[trainer] validation is not what it was ({}; now {}): scores can't be compared, so the "
        "best so far starts anew",
        state_.validated_as, validation_name());
    state_.best_score.reset();
    state_.best_update = state_.validations_without_gain = 0;
  }
}

void Trainer::load_initial_weights() {
  const fs::path from = find_checkpoint(*config_.init_from);
  const Checkpoint checkpoint(from);
  for (const auto& [name, text] : files_.texts) {
    if (name.ends_with(".vocab")) check_vocabulary(checkpoint, name, text);
  }
  check_model(checkpoint, files_.texts.at(std::string(kSettingsFile)));
  load_parameters(parameters_.table(), checkpoint.translation_weights(), parameters_.flat_master());
  spdlog::info("[trainer] starts with the weights of {}", from.string());
}

void Trainer::send_from_rank_0() {
  if (group_.size() == 1) return;
  std::string text = to_json(state_);
  text.resize(static_cast<std::size_t>(
      group_.sum(group_.rank() == 0 ? static_cast<std::int64_t>(text.size()) : 0)));
  group_.broadcast(std::as_writable_bytes(std::span(text)), 0);
  state_ = parse_training_state(text, "the state sent by rank 0");
  for (const Tensor& t : {parameters_.flat_master(), optimizer_.first_moment(),
                          optimizer_.second_moment(), optimizer_.average()}) {
    if (t.present()) group_.broadcast(bytes_of_tensor(t), 0);
  }
}

void Trainer::save() {
  const bool best = is_best(state_);
  if (saved_update_ == state_.update && !validation_unsaved_) return;
  check_weights();
  saved_update_ = state_.update;
  validation_unsaved_ = best_unsaved_ = false;
  saved_seconds_ = state_.seconds;
  if (group_.rank() != 0) return;

  const ParameterTable& table = parameters_.table();
  CheckpointContents contents;
  contents.texts = files_.texts;
  contents.texts[std::string(kStateFile)] = to_json(state_);
  contents.tensors[std::string(kWeightsFile)] = stored_tensors(table, parameters_.flat_master());
  std::vector<NamedTensor>& moments = contents.tensors[std::string(kOptimizerFile)];
  append(moments, stored_tensors(table, optimizer_.first_moment(), kFirstMoment));
  append(moments, stored_tensors(table, optimizer_.second_moment(), kSecondMoment));
  if (optimizer_.average().present()) {
    contents.tensors[std::string(kEmaFile)] = stored_tensors(table, optimizer_.average());
  }
  const fs::path run = config_.output;
  const fs::path folder = checkpoint_folder(run, state_.update);
  write_checkpoint(folder, contents);
  if (best) point_to_best(config_, state_);
  remove_expired(run, config_.checkpoints.retention);
  observer_.saved(folder);
}

}  // namespace octavo
