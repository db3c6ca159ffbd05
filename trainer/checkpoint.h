#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/safetensors.h"
#include "trainer/training_state.h"

/// One checkpoint: a folder that is complete or absent. docs/formats/checkpoint.md
/// trainer/run_folder.h knows the checkpoints of a run.
namespace octavo {

inline constexpr std::string_view kWeightsFile = "weights.safetensors";
inline constexpr std::string_view kEmaFile = "ema.safetensors";
inline constexpr std::string_view kOptimizerFile = "optimizer.safetensors";
inline constexpr std::string_view kSettingsFile = "settings.yaml";
inline constexpr std::string_view kStateFile = "state.json";
/// Names in optimizer.safetensors begin with these.
inline constexpr std::string_view kFirstMoment = "first.";
inline constexpr std::string_view kSecondMoment = "second.";

/// What a checkpoint is to hold, by file name.
struct CheckpointContents {
  std::map<std::string, std::vector<NamedTensor>> tensors =
      {};                                         ///< written straight from their memory
  std::map<std::string, std::string> texts = {};  ///< settings, state, subword models, vocabularies
  std::map<std::string, std::string> remarks = {};  ///< kept in every safetensors file's metadata
};

/// Writes a checkpoint. It is made beside its place as "FOLDER.octavo.tmp", flushed to the disk
/// (files and folders) and renamed, so that FOLDER is complete or absent whatever happens. A
/// checkpoint that is there already is exchanged for the new one in one step.
/// @param folder  its parent must exist.
/// @throws UserError  it can't be written; nothing of it is left and other checkpoints are
///                    untouched.
void write_checkpoint(const std::filesystem::path& folder, const CheckpointContents& contents);

/// Removes a checkpoint: renamed first, so that no half of it is ever taken for a whole.
/// @throws UserError
void remove_checkpoint(const std::filesystem::path& folder);

/// Removes what killed writers have left in a folder. No writer may be at work there.
/// @throws UserError
void remove_leftovers(const std::filesystem::path& folder);

/// A checkpoint that is there.
class Checkpoint {
 public:
  struct File {
    std::int64_t size;  ///< bytes
    std::string hash;   ///< XXH3, 16 hexadecimal digits
  };

  /// Reads the manifest and compares the size of every file. No hash is computed before a file is
  /// asked for.
  /// @throws UserError  there is no manifest, it is damaged or of another version, or a file is
  ///                    missing or of another size: the message names the file.
  explicit Checkpoint(const std::filesystem::path& folder);

  /// Whether `folder` has a manifest.
  static bool is_there(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return folder_; }
  /// "octavo 0.1.0": the program that wrote it.
  const std::string& program() const { return program_; }
  const std::map<std::string, File, std::less<>>& files() const { return files_; }
  bool has(std::string_view name) const { return files_.contains(name); }

  // These compare the file's hash first. @throws UserError  it is damaged or not in the checkpoint.
  SafetensorsFile tensors(std::string_view name) const;
  std::string text(std::string_view name) const;
  TrainingState state() const;
  /// What translation uses: the averages if the run kept them (EMA), else the weights.
  SafetensorsFile translation_weights() const;
  /// Compares the hash of every file.
  void verify() const;

  /// The file that translation_weights() opens.
  std::string_view translation_weights_file() const;
  /// Compares the hash of one file, or of its content where that is at hand.
  void verify(std::string_view name) const;
  void verify(std::string_view name, std::span<const std::byte> content) const;
  /// As tensors(), for callers that verify() meanwhile.
  SafetensorsFile unverified_tensors(std::string_view name) const;

 private:
  const File& file(std::string_view name) const;
  void check_hash(std::string_view name, const std::string& found) const;
  void read_manifest(const std::string& text);
  [[noreturn]] void damaged(const std::string& what) const;

  std::filesystem::path folder_;
  std::string program_;
  std::map<std::string, File, std::less<>> files_;
};

/// Compares TrainingState::hashes of a checkpoint with those of what is there now.
/// @throws UserError  naming what is different, missing or new.
void check_hashes(const std::filesystem::path& checkpoint,
                  const std::map<std::string, std::string>& saved,
                  const std::map<std::string, std::string>& now);

}  // namespace octavo
