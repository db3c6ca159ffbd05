#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/buckets.h"
#include "comm/group.h"
#include "comm/signals.h"
#include "model/ops/machine_limits.h"
#include "trainer/config.h"
#include "trainer/memory_plan.h"
#include "trainer/optimizer.h"
#include "trainer/profile_text.h"
#include "trainer/schedule.h"
#include "trainer/task.h"
#include "trainer/training_state.h"

namespace octavo {

/// What one update did, over all ranks.
struct StepReport {
  std::int64_t update;  ///< from 1
  std::int64_t epoch;   ///< from 0
  double loss, nll;     ///< per target token
  double rate;
  double norm;  ///< of the gradient before clipping
  bool finite;  ///< false: skipped
  std::int64_t source_tokens, target_tokens, sentences;
  double seconds;             ///< the whole update
  double data_seconds;        ///< of these, waited for data; mean over ranks
  double collective_seconds;  ///< and for gradients of other ranks
  double flop_utilisation;    ///< FLOPs per second as a share of all ranks' peak
};

/// Watches a training: writes metrics, draws the progress line. Rank 0 only.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  virtual void started(const TrainingState& state, const MemoryPlan& plan) = 0;
  virtual void stepped(const StepReport& report, const TrainingState& state) = 0;
  virtual void validated(const ValidationResult& result, const TrainingState& state, bool best) = 0;
  virtual void saved(const std::filesystem::path& checkpoint) = 0;
};

/// What every checkpoint carries besides numbers, so that it can translate alone and a resumed run
/// is known to be the same run.
struct RunFiles {
  std::map<std::string, std::string>
      texts;  ///< by file name: settings, subword models, vocabularies
  std::map<std::string, std::string> hashes;  ///< of data, subword models, vocabularies
};

/// How a training ended.
enum class TrainingEnd : unsigned char { finished, stopped_early, interrupted };

/// The loop: updates, validation, checkpoints. All ranks run it alike; rank 0 alone writes.
class Trainer {
 public:
  struct Setup {
    const TrainerConfig& config;
    std::int64_t bucket_bytes;  ///< gradients summed at a time
    std::int64_t model_width;   ///< for the paper's schedule
    RunFiles files;
    int threads;
    int ranks_on_host;
  };

  /// Plans memory, takes it, and restores the newest checkpoint of config.output, if there is one;
  /// else starts from config.init_from or from random weights.
  /// @throws UserError  it does not fit into memory; the run was made from other data.
  Trainer(const Setup& setup, Task& task, Group& group, const StopSignals& signals,
          TrainingObserver& observer);

  /// Trains until one of the limits of the settings, or until a rank is asked to stop.
  TrainingEnd run();

  const TrainingState& state() const { return state_; }
  const MemoryPlan& plan() const { return plan_; }
  /// Of this rank's updates, and what its threads do at best. Validation is not in it.
  const Profile& profile() const { return profile_; }
  const UpdateTimes& times() const { return times_; }
  const MachineLimits& limits() const { return limits_; }

 private:
  using Clock = std::chrono::steady_clock;

  MemoryPlan agree_on_plan(int threads, int ranks_on_host) const;
  std::int64_t former_max_tokens() const;
  std::string validation_name() const;
  void restore(const std::filesystem::path& checkpoint);
  void restore_from_newest();
  void load_initial_weights();
  void send_from_rank_0();
  bool finished() const;
  bool out_of_patience() const;
  StepReport step(const UpdateWork& work);
  void accumulate(const UpdateWork& work);
  void count_skipped(const StepReport& report);
  void check_weights();
  double progress() const;
  bool validation_due() const;
  bool checkpoint_due() const;
  void validate();
  void save();
  double elapsed() const;

  TrainerConfig config_;
  RunFiles files_;
  Task& task_;
  Group& group_;
  const StopSignals& signals_;
  TrainingObserver& observer_;
  Schedule schedule_;
  MemoryPlan plan_;
  Context ctx_;
  Profile profile_;
  UpdateTimes times_;
  MachineLimits limits_;
  double peak_flops_;  ///< per second, of all ranks together
  Parameters parameters_;
  Optimizer optimizer_;
  std::unique_ptr<Parameters> averaged_;  ///< weights from the running average, for validation
  Arena activations_;
  GradientBuckets buckets_;
  std::vector<double> sums_;  ///< loss and -log p of the present update, this rank's share

  TrainingState state_;
  bool stop_ = false;
  double seconds_before_ = 0;  ///< of training in former starts, less validation's in this one
  Clock::time_point began_;
  double saved_seconds_ = 0;
  std::int64_t saved_update_ = -1;
  bool validation_unsaved_ = false;  ///< validated since the last checkpoint
  bool best_unsaved_ = false;        ///< and found a new best
};

}  // namespace octavo
