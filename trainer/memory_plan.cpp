#include "trainer/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "core/error.h"
#include "core/token_batch.h"
#include "trainer/optimizer.h"

namespace octavo {

namespace {

/// Beyond this a larger micro-batch gains nothing on a CPU and costs cache.
constexpr std::int64_t kLargestAutomatic = 16384;

/// The number behind a key in a file of "KEY NUMBER ..." lines, or in a file that is one number.
std::optional<std::int64_t> number_in(const char* path, const std::string& key = "") {
  std::ifstream file(path);
  std::string word;
  std::int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream text(line);
    if (!key.empty() && !(text >> word && word == key)) continue;
    if (text >> number) return number;
  }
  return std::nullopt;
}

/// Bytes that the container, if this is one, may still take: what it gives back at once, files that
/// were read, counts as free. Empty without a limit.
std::optional<std::int64_t> container_bytes() {
  const auto limit = number_in("/sys/fs/cgroup/memory.max");
  const auto used = number_in("/sys/fs/cgroup/memory.current");
  if (!limit || !used) return std::nullopt;
  const auto files = number_in("/sys/fs/cgroup/memory.stat", "inactive_file");
  return std::max<std::int64_t>(0, *limit - *used + files.value_or(0));
}

/// Bytes the kernel could hand out without swapping.
std::int64_t available_bytes() {
  const auto kilobytes = number_in("/proc/meminfo", "MemAvailable:");
  if (!kilobytes) {
    throw UserError(
        "/proc/meminfo does not tell what memory is free: set trainer.memory_gigabytes");
  }
  const std::int64_t host = *kilobytes * 1024;
  return std::min(host, container_bytes().value_or(host));
}

std::string gigabytes(std::int64_t bytes) {
  return fmt::format("{:.3g}", static_cast<double>(bytes) / 1e9);
}

/// What to change so that a plan fits: what takes most is named first.
std::string advice(const MemoryPlan& plan, const TrainerConfig& config) {
  const std::int64_t weights = plan.parameters + plan.optimizer;
  const std::int64_t batch = plan.activations + plan.scratch;
  std::string text =
      "Lower trainer.max_tokens or data.max_length, set trainer.recompute: layer, or start fewer "
      "ranks on this host";
  if (weights > std::max(batch, plan.validation)) text = "Make the model smaller";
  if (plan.validation > std::max(batch, weights))
    text = "Lower translate.batch_tokens, translate.beam or data.max_length";
  if (config.memory_gigabytes) text += "; trainer.memory_gigabytes is the limit that was set";
  return text;
}

}  // namespace

MemoryPlan plan_memory(const PlannedWork& work, const TrainerConfig& config, int threads,
                       std::int64_t max_tokens) {
  MemoryPlan plan;
  plan.max_tokens = max_tokens;
  Context ctx(Device::plan, threads, 0);
  Parameters parameters(work.parameter_table(), ctx, dtype_of(config.precision), true);
  Optimizer optimizer(config.optimizer, config.average_decay, ctx, parameters);
  Arena activations;
  const Pass pass{ctx, parameters, activations, {.training = true, .seed = 0, .update = 0}};
  work.plan(pass, max_tokens);
  optimizer.step(ctx, 0);
  plan.parameters = parameters.bytes();
  plan.optimizer = optimizer.bytes();
  plan.activations = activations.high_water();
  plan.scratch = ctx.scratch().high_water();
  plan.validation = work.validation_bytes(config.average_decay.has_value());
  return plan;
}

std::int64_t memory_budget(const TrainerConfig& config, int ranks_on_host) {
  if (config.memory_gigabytes) return static_cast<std::int64_t>(*config.memory_gigabytes * 1e9);
  return available_bytes() / 10 * 8 / ranks_on_host;
}

MemoryPlan choose_plan(const PlannedWork& work, const TrainerConfig& config, int threads,
                       std::int64_t budget) {
  const std::int64_t smallest = work.smallest_max_tokens();
  const std::int64_t largest = config.max_tokens.value_or(
      round_up(std::min(config.tokens_per_update, kLargestAutomatic), kRowMultiple));
  if (config.max_tokens && *config.max_tokens < smallest) {
    throw UserError(fmt::format(
        "trainer.max_tokens is {}, but one sentence may have {} tokens (data.max_length): raise "
        "the one or lower the other",
        *config.max_tokens, smallest));
  }
  std::int64_t tokens = std::max(largest, smallest);
  MemoryPlan plan = plan_memory(work, config, threads, tokens);
  while (!config.max_tokens && plan.total() > budget && tokens > smallest) {
    tokens = std::max(smallest, tokens / 2 / kRowMultiple * kRowMultiple);
    plan = plan_memory(work, config, threads, tokens);
  }
  if (plan.total() > budget) {
    throw UserError(fmt::format(
        "a micro-batch of {} target tokens takes {} GB on each rank (parameters {}, optimiser {}, "
        "activations {}, scratch {}, validation {}), but {} GB may be used. {}",
        tokens, gigabytes(plan.total()), gigabytes(plan.parameters), gigabytes(plan.optimizer),
        gigabytes(plan.activations), gigabytes(plan.scratch), gigabytes(plan.validation),
        gigabytes(budget), advice(plan, config)));
  }
  return plan;
}

}  // namespace octavo
