#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace octavo {

/// The newest `count` checkpoints of a run, the oldest of them first.
/// @throws UserError  it has fewer: another number than was asked for is never averaged.
std::vector<std::filesystem::path> last_checkpoints(const std::filesystem::path& run,
                                                    std::int64_t count);

/// Makes a checkpoint whose weights are the means of those of `checkpoints`, for translation: it
/// has no optimiser state. Where the run kept running averages (EMA), these are averaged.
///
/// Sums are float64, in the order given; means are float32, or float64 if the weights are. Settings
/// and subword models are those of the last checkpoint. Memory: one model. Logs what is averaged.
///
/// @throws UserError  a checkpoint is damaged or given twice; they differ in shapes, in vocabulary
///                    or subword model, in what the model computes, or in keeping averages; a
///                    weight is not finite; `output` is there already or can't be written.
void average_checkpoints(std::span<const std::filesystem::path> checkpoints,
                         const std::filesystem::path& output);

}  // namespace octavo
