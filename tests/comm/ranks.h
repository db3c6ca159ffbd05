#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace octavo::testkit {

/// mpirun with test_comm_mpi, or a script that starts it, running beside the test.
class Ranks {
 public:
  /// Starts `ranks` processes of a scenario (tests/comm/scenarios.h).
  Ranks(int ranks, const std::string& scenario, double argument = 0.0);
  /// Starts any command; OCTAVO names test_comm_mpi.
  explicit Ranks(const std::vector<std::string>& command);
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  /// Kills what is left.
  ~Ranks();

  pid_t process() const { return process_; }
  /// The process that said "rank R is process P". -1 if none did.
  pid_t process(int rank) const;
  /// Waits until the output so far contains `text`. @returns whether it came within 30 s.
  bool says(const std::string& text);
  /// Waits for the end. @returns its exit code, 128 + N if signal N ended it, -1 if it still
  /// ran after `limit_seconds`.
  int exit_code(double limit_seconds = 60.0);
  /// What ranks and mpirun wrote to stdout and stderr so far.
  const std::string& output() const { return output_; }

 private:
  bool read_more(double seconds);

  pid_t process_ = -1;
  int pipe_ = -1;
  std::string output_;
};

/// Runs a scenario to its end. @returns its output if it failed, "" if it passed.
std::string run_ranks(int ranks, const std::string& scenario, double argument = 0.0);

/// The parent of a process, 0 if it is gone.
pid_t parent_of(pid_t process);

/// Its children with this name (/proc/P/comm), the oldest first.
std::vector<pid_t> children_of(pid_t process, const std::string& name);

/// An environment variable of a running process, "" if it has none.
std::string variable_of(pid_t process, const std::string& name);

/// Whether a process exists and has not ended (a zombie that nobody reaped has).
bool is_running(pid_t process);

/// How often `piece` occurs in `text`.
int occurrences(const std::string& text, const std::string& piece);

}  // namespace octavo::testkit
