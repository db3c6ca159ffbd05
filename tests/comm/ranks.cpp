#include "tests/comm/ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/error.h"

namespace octavo::testkit {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_until(Clock::time_point deadline) {
  return std::chrono::duration<double>(deadline - Clock::now()).count();
}

Clock::time_point in_seconds(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// "S 1 ..." of /proc/P/stat, which reads "17 (name) S 1 ..."; empty if there is no such process.
std::string state_and_parent(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string stat;
  std::getline(file, stat);
  const std::size_t name_end = stat.rfind(')');
  return name_end == std::string::npos ? "" : stat.substr(name_end + 2);
}

}  // namespace

Ranks::Ranks(int ranks, const std::string& scenario, double argument)
    : Ranks({"mpirun", "-q", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca",
             "pml", "ob1", "--mca", "btl", "self,vader", "-n", std::to_string(ranks),
             OCTAVO_MPI_PROGRAM, scenario, fmt::format("{}", argument)}) {}

Ranks::Ranks(const std::vector<std::string>& command) {
  std::array<int, 2> ends{};
  expect(pipe2(ends.data(), O_CLOEXEC) == 0, "pipe failed");
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  process_ = fork();
  expect(process_ >= 0, "fork failed");
  if (process_ == 0) {
    setpgid(0, 0);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    // Open MPI itself leaks: only our own faults count.
    setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
    setenv("OCTAVO", OCTAVO_MPI_PROGRAM, 1);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(ends[1]);
  pipe_ = ends[0];
}

Ranks::~Ranks() {
  if (process_ > 0) {
    kill(-process_, SIGKILL);  // ranks follow when they lose mpirun
    waitpid(process_, nullptr, 0);
  }
  close(pipe_);
}

pid_t Ranks::process(int rank) const {
  const std::string words = fmt::format("rank {} is process ", rank);
  const std::size_t at = output_.find(words);
  return at == std::string::npos ? -1 : std::atoi(output_.c_str() + at + words.size());
}

bool Ranks::says(const std::string& text) {
  const auto deadline = in_seconds(30.0);
  while (output_.find(text) == std::string::npos)
    if (!read_more(seconds_until(deadline))) return output_.find(text) != std::string::npos;
  return true;
}

int Ranks::exit_code(double limit_seconds) {
  const auto deadline = in_seconds(limit_seconds);
  while (read_more(seconds_until(deadline))) {
  }
  for (;;) {
    int status = 0;
    if (waitpid(process_, &status, WNOHANG) == process_) {
      process_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    if (seconds_until(deadline) <= 0) return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// Appends what comes next; false at the end of the output or of the time.
bool Ranks::read_more(double seconds) {
  if (seconds <= 0) return false;
  pollfd waiting{.fd = pipe_, .events = POLLIN, .revents = 0};
  const int ready = poll(&waiting, 1, static_cast<int>(seconds * 1000) + 1);
  if (ready < 0 && errno == EINTR) return true;
  if (ready <= 0) return false;
  std::array<char, 4096> piece{};
  const ssize_t n = read(pipe_, piece.data(), piece.size());
  if (n <= 0) return false;
  output_.append(piece.data(), static_cast<std::size_t>(n));
  return true;
}

std::string run_ranks(int ranks, const std::string& scenario, double argument) {
  Ranks run(ranks, scenario, argument);
  const int code = run.exit_code();
  return code == 0 ? "" : fmt::format("exit code {}\n{}", code, run.output());
}

pid_t parent_of(pid_t process) {
  const std::string fields = state_and_parent(process);
  return fields.empty() ? 0 : std::atoi(fields.c_str() + 2);
}

std::vector<pid_t> children_of(pid_t process, const std::string& name) {
  std::vector<pid_t> found;
  std::error_code gone;
  for (std::filesystem::directory_iterator task(fmt::format("/proc/{}/task", process), gone), end;
       !gone && task != end; task.increment(gone)) {
    std::ifstream children(task->path() / "children");
    for (pid_t child = 0; children >> child;) {
      std::string comm;
      std::getline(std::ifstream(fmt::format("/proc/{}/comm", child)), comm);
      if (comm == name) found.push_back(child);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string variable_of(pid_t process, const std::string& name) {
  std::ifstream file(fmt::format("/proc/{}/environ", process));
  for (std::string entry; std::getline(file, entry, '\0');)
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  return "";
}

bool is_running(pid_t process) {
  const std::string fields = state_and_parent(process);
  return !fields.empty() && fields[0] != 'Z';
}

int occurrences(const std::string& text, const std::string& piece) {
  int count = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1))
    ++count;
  return count;
}

}  // namespace octavo::testkit
