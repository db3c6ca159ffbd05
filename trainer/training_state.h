#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace octavo {

/// Where a training run stands, apart from tensors: what a restart needs to go on exactly there.
struct TrainingState {
  std::int64_t update = 0;           ///< updates done, skipped ones included
  std::int64_t epoch = 0;            ///< counted from 0
  std::int64_t epoch_update = 0;     ///< updates done of this epoch: the cursor in its plan
  std::int64_t skipped_updates = 0;  ///< not finite, in the whole run
  std::int64_t skipped_in_a_row = 0;
  std::uint64_t seed = 0;
  std::int64_t source_tokens = 0;  ///< trained on so far, EOS counted
  std::int64_t target_tokens = 0;
  double seconds = 0;                     ///< of training so far, over all starts of the run
  double validation_seconds = 0;          ///< `seconds` at the last validation
  std::optional<double> best_score = {};  ///< of the validations so far; the larger the better
  std::int64_t best_update = 0;
  std::int64_t validations_without_gain = 0;  ///< in a row, for early stopping
  std::string validated_as = {};              ///< what best_score measures: Task::validation_name()
  bool validation_missing = false;            ///< due after `update`, but the run was asked to stop
  /// Target tokens of a micro-batch that trainer.max_tokens: auto chose; 0: it was set.
  std::int64_t automatic_max_tokens = 0;
  /// XXH3 of what the run was trained on: "data.train[0]", "vocabulary.source", ...
  std::map<std::string, std::string> hashes = {};

  bool operator==(const TrainingState&) const = default;

  /// The one list of fields, for reading and writing.
  template <typename Visitor>
  void describe(Visitor& v) {
    v.field("update", update);
    v.field("epoch", epoch);
    v.field("epoch_update", epoch_update);
    v.field("skipped_updates", skipped_updates);
    v.field("skipped_in_a_row", skipped_in_a_row);
    v.field("seed", seed);
    v.field("source_tokens", source_tokens);
    v.field("target_tokens", target_tokens);
    v.field("seconds", seconds);
    v.field("validation_seconds", validation_seconds);
    v.field("best_score", best_score);
    v.field("best_update", best_update);
    v.field("validations_without_gain", validations_without_gain);
    v.field("validated_as", validated_as);
    v.field("validation_missing", validation_missing);
    v.field("automatic_max_tokens", automatic_max_tokens);
    v.field("hashes", hashes);
  }
};

/// JSON that parse_training_state() reads back to an equal state, doubles to the last bit.
std::string to_json(const TrainingState& state);

/// @param name  where the text is from, for messages.
/// @throws UserError  it is no JSON, a field is missing, unknown or of another type.
TrainingState parse_training_state(const std::string& text, const std::string& name);

}  // namespace octavo
