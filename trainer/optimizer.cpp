#include "trainer/optimizer.h"

#include <algorithm>

#include "model/ops/elementwise.h"
#include "model/ops/optimizer.h"

namespace octavo {

Optimizer::Optimizer(const OptimizerConfig& config, std::optional<double> average_decay,
                     Context& ctx, Parameters& parameters)
    : config_(config),
      average_decay_(average_decay),
      parameters_(parameters),
      runs_(parameters.table().runs(config.weight_decay)) {
  const Tensor& master = parameters.flat_master();
  const auto allocate = [&](Arena& arena) {
    first_ = arena.allocate({master.dim(0)}, master.dtype());
    second_ = arena.allocate({master.dim(0)}, master.dtype());
    if (average_decay_) average_ = arena.allocate({master.dim(0)}, master.dtype());
    control_ = arena.allocate({3}, DType::f64);
  };
  memory_ = std::make_unique<Arena>();
  allocate(*memory_);
  if (ctx.device() == Device::plan) return;
  memory_ = std::make_unique<Arena>(memory_->high_water());
  allocate(*memory_);
}

void Optimizer::start_average(Context& ctx) {
  if (average_.present()) convert(ctx, parameters_.flat_master(), average_);
}

bool Optimizer::weights_are_finite(Context& ctx) {
  gradient_norm(ctx, parameters_.flat_master(), runs_, 0, control_);
  return control_.data<double>()[static_cast<int>(StepControl::finite)] != 0;
}

StepOutcome Optimizer::step(Context& ctx, double rate) {
  ++count_;
  const Tensor master = parameters_.flat_master(), weights = parameters_.flat_weights();
  gradient_norm(ctx, parameters_.flat_gradient(), runs_, config_.clip_norm.value_or(0), control_);
  adam(ctx, {.master = master,
             .gradient = parameters_.flat_gradient(),
             .first = first_,
             .second = second_,
             .weights = weights.dtype() == DType::bf16 ? weights : Tensor(),
             .runs = runs_,
             .control = control_,
             .rate = rate,
             .beta1 = config_.beta1,
             .beta2 = config_.beta2,
             .epsilon = config_.epsilon,
             .count = count_});
  if (average_.present()) {
    // Early on the average follows quickly, so that it does not carry the random start along.
    const double n = static_cast<double>(count_);
    exponential_average(ctx, master, std::min(*average_decay_, n / (n + 9.0)), average_);
  }
  if (ctx.device() == Device::plan) return {.norm = 0, .finite = true};
  const double* control = control_.data<double>();
  return {.norm = control[static_cast<int>(StepControl::norm)],
          .finite = control[static_cast<int>(StepControl::finite)] != 0};
}

}  // namespace octavo
