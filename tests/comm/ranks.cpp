#include "tests/comm/ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
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

}  // namespace

Ranks::Ranks(int ranks, const std::string& scenario, double argument) {
  std::array<int, 2> ends{};
  expect(pipe2(ends.data(), O_CLOEXEC) == 0, "pipe failed");
  const std::string count = std::to_string(ranks), extra = fmt::format("{}", argument);
  mpirun_ = fork();
  expect(mpirun_ >= 0, "fork failed");
  if (mpirun_ == 0) {
    setpgid(0, 0);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    // Open MPI itself leaks: only our own faults count.
    setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
    execlp("mpirun", "mpirun", "-q", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
           "--mca", "pml", "ob1", "--mca", "btl", "self,vader", "-n", count.c_str(),
           OCTAVO_MPI_PROGRAM, scenario.c_str(), extra.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  pipe_ = ends[0];
}

Ranks::~Ranks() {
  if (mpirun_ > 0) {
    kill(mpirun_, SIGKILL);  // its ranks follow when they lose it
    waitpid(mpirun_, nullptr, 0);
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
    if (waitpid(mpirun_, &status, WNOHANG) == mpirun_) {
      mpirun_ = -1;
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

bool is_running(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string stat;
  if (!std::getline(file, stat)) return false;
  const std::size_t name_end = stat.rfind(')');  // "17 (name) S ..."
  return name_end != std::string::npos && stat.substr(name_end + 2, 1) != "Z";
}

int occurrences(const std::string& text, const std::string& piece) {
  int count = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1))
    ++count;
  return count;
}

}  // namespace octavo::testkit
