#pragma once

#include <string>
#include <vector>

#include "tests/testkit/program.h"
#include "tests/testkit/temp_folder.h"

namespace octavo::testkit {

/// What one update did, as metrics.jsonl tells.
struct UpdateRecord {
  double loss, norm;
};

/// Expects that a command ended as it should after a user's mistake: exit code 2, and one line that
/// begins with "error: ", says all of `parts` and nothing that only a programmer understands.
void expect_user_error(const ProgramResult& result, const std::vector<std::string>& parts);

/// A folder with text, prepared data and runs of a small experiment, driven through the program and
/// its scripts as a user would.
class ExperimentFolder {
 public:
  /// Settings of a model that trains in no time and learns nothing.
  static std::vector<std::string> tiny_model();

  /// Writes text whose target is a function of its source, lines of 1 to `longest` words, and
  /// x.yaml for a small model; prepares it.
  explicit ExperimentFolder(int longest);

  std::string path(const std::string& name) const { return folder_.path() / name; }
  std::string config() const { return path("x.yaml"); }

  /// octavo train in a process of its own, without mpirun.
  /// @param settings  "trainer.max_updates=50", ...
  ProgramResult train(const std::string& run, const std::vector<std::string>& settings,
                      int threads = 1) const;
  /// The arguments of that command, the program's path first, for a shell to run.
  std::vector<std::string> train_arguments(const std::string& run,
                                           const std::vector<std::string>& settings,
                                           int threads = 1) const;
  /// octavo prepare on one thread.
  ProgramResult prepare(const std::vector<std::string>& settings) const;
  std::vector<std::string> prepare_arguments(const std::vector<std::string>& settings) const;
  /// launch/train.sh with so many ranks.
  ProgramResult train_ranks(const std::string& run, const std::vector<std::string>& settings,
                            int ranks) const;
  /// Any other command: octavo ARGUMENTS < input.
  static ProgramResult octavo(const std::vector<std::string>& arguments,
                              const std::string& input = "");

  /// Reports of the run, one for each update if trainer.report_every is 1.
  std::vector<UpdateRecord> records(const std::string& run) const;
  /// All files of a checkpoint that hold numbers, one after the other.
  std::string weights(const std::string& run, std::int64_t update) const;

 private:
  void write_text(const std::string& name, int lines, int longest, std::uint64_t seed) const;
  std::vector<std::string> output_arguments(const std::string& run,
                                            const std::vector<std::string>& settings) const;

  TempFolder folder_;
};

}  // namespace octavo::testkit
