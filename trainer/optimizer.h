#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/arena.h"
#include "core/context.h"
#include "model/parameters.h"
#include "trainer/config.h"

namespace octavo {

/// What one update did, read from the device.
struct StepOutcome {
  double norm;  ///< of the gradient before clipping
  bool finite;  ///< false: the update was skipped
};

/// Adam over the flat buffers: owns the moments, and the running average of weights if wanted.
class Optimizer {
 public:
  /// On a plan nothing is allocated; bytes() tells what would be.
  Optimizer(const OptimizerConfig& config, std::optional<double> average_decay, Context& ctx,
            Parameters& parameters);

  /// One update from the summed gradient. Skips when the norm is not finite; counts all the same.
  StepOutcome step(Context& ctx, double rate);

  /// Whether the master weights are numbers still: a rate that is far too high makes them infinite.
  bool weights_are_finite(Context& ctx);

  /// Updates so far: bias correction goes on from here after a resume.
  std::int64_t count() const { return count_; }
  void set_count(std::int64_t count) { count_ = count; }
  /// The average starts as a copy of the weights: call after they are drawn or loaded.
  void start_average(Context& ctx);

  Tensor first_moment() const { return first_; }
  Tensor second_moment() const { return second_; }
  /// Absent unless average_decay was given.
  Tensor average() const { return average_; }
  std::int64_t bytes() const { return memory_->high_water(); }

 private:
  OptimizerConfig config_;
  std::optional<double> average_decay_;
  Parameters& parameters_;
  std::vector<ParameterRun> runs_;
  std::unique_ptr<Arena> memory_;
  Tensor first_, second_, average_, control_;
  std::int64_t count_ = 0;
};

}  // namespace octavo
