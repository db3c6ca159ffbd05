#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/settings.h"

/// The checkpoints of a run: RUN/checkpoints/step_00001000/ and RUN/checkpoints/best.json.
/// docs/formats/checkpoint.md
namespace octavo {

/// RUN/checkpoints
std::filesystem::path checkpoints_folder(const std::filesystem::path& run);
/// RUN/checkpoints/step_00001000 for update 1000.
std::filesystem::path checkpoint_folder(const std::filesystem::path& run, std::int64_t update);

struct StepCheckpoint {
  std::int64_t update;
  std::filesystem::path path;
};

/// A run's checkpoints, the oldest first. Folders without a manifest are none.
/// @throws UserError  the folder can't be read. A run without checkpoints is no error.
std::vector<StepCheckpoint> list_checkpoints(const std::filesystem::path& run);

/// Warns of folders that are named like checkpoints and have no manifest.
void warn_of_incomplete(const std::filesystem::path& run);

/// Which checkpoint scored best, and how.
struct BestCheckpoint {
  std::int64_t update;
  std::string metric;  ///< "bleu", "nll"
  double score;
};

/// Writes RUN/checkpoints/best.json in one step. @throws UserError
void write_best(const std::filesystem::path& run, const BestCheckpoint& best);
/// Nothing if there is no best.json. @throws UserError  it is damaged.
std::optional<BestCheckpoint> read_best(const std::filesystem::path& run);

/// The checkpoint that a user means.
/// @param path  a checkpoint, or a run: then its best checkpoint or, without validation, its
/// newest.
/// @throws UserError  it is neither, or the run has no checkpoint yet, or its best one is gone.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

/// Which checkpoints a run keeps. The best one is always kept.
struct RetentionConfig {
  std::int64_t keep_last = 5;
  std::optional<std::int64_t> keep_every = {};

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("keep_last", keep_last, "newest checkpoints that are kept", v.at_least(1));
    v.setting("keep_every", keep_every,
              "updates: the first checkpoint of each such stretch is kept for good; none: no such",
              v.at_least(1));
  }
};

/// The updates whose checkpoints may go.
/// @param updates       of the checkpoints there are, increasing.
/// @param best          update of the best checkpoint, if it is known.
std::vector<std::int64_t> expired(std::span<const std::int64_t> updates,
                                  const RetentionConfig& config, std::optional<std::int64_t> best);

/// Removes the run's expired checkpoints. @throws UserError
void remove_expired(const std::filesystem::path& run, const RetentionConfig& config);

}  // namespace octavo
