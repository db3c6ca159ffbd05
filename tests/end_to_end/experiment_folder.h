#pragma once

#include <gtest/gtest.h>

#include <memory>
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

  /// Writes other text to train on, and NAME.yaml that is x.yaml but for that text and for how
  /// subwords are made; prepares it. @returns the path of NAME.yaml.
  std::string other_experiment(const std::string& name, std::uint64_t seed,
                               const std::string& subwords) const;

  std::string path(const std::string& name) const { return folder_.path() / name; }
  std::string config() const { return path("x.yaml"); }

  /// octavo train in a process of its own, without mpirun.
  /// @param settings  "trainer.max_updates=50", ...
  /// @param config    another experiment's; "": config().
  ProgramResult train(const std::string& run, const std::vector<std::string>& settings,
                      int threads = 1, const std::string& config = "") const;
  /// The arguments of that command, the program's path first, for a shell to run.
  std::vector<std::string> train_arguments(const std::string& run,
                                           const std::vector<std::string>& settings,
                                           int threads = 1, const std::string& config = "") const;
  /// octavo prepare on one thread.
  ProgramResult prepare(const std::vector<std::string>& settings) const;
  std::vector<std::string> prepare_arguments(const std::vector<std::string>& settings) const;
  /// launch/train.sh with so many ranks of so many threads.
  ProgramResult train_ranks(const std::string& run, const std::vector<std::string>& settings,
                            int ranks, int threads = 1, const char* program = OCTAVO_PROGRAM) const;
  /// The arguments of that command. The environment's OCTAVO names the program.
  std::vector<std::string> train_ranks_arguments(const std::string& run,
                                                 const std::vector<std::string>& settings,
                                                 int ranks, int threads = 1) const;
  /// Any other command: octavo ARGUMENTS < input.
  static ProgramResult octavo(const std::vector<std::string>& arguments,
                              const std::string& input = "");

  /// Reports of the run, one for each update if trainer.report_every is 1.
  std::vector<UpdateRecord> records(const std::string& run) const;
  /// Lines of metrics.jsonl without what depends on the clock.
  std::vector<std::string> metrics(const std::string& run) const;
  /// All files of a checkpoint that hold numbers, one after the other.
  std::string weights(const std::string& run, std::int64_t update) const;

 private:
  void write_and_prepare(const std::string& config, const std::string& text,
                         const std::string& prepared, const std::string& subwords) const;
  void write_text(const std::string& name, int lines, int longest, std::uint64_t seed) const;
  std::vector<std::string> output_arguments(const std::string& run,
                                            const std::vector<std::string>& settings) const;

  TempFolder folder_;
};

/// A suite whose tests share one folder with lines of up to 40 words.
class ExperimentTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { folder_ = std::make_unique<ExperimentFolder>(40); }
  static void TearDownTestSuite() { folder_.reset(); }
  inline static std::unique_ptr<ExperimentFolder> folder_;
};

}  // namespace octavo::testkit
