#include "tests/testkit/kill.h"

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>

#include "core/error.h"

namespace octavo::testkit {
namespace {

constexpr int kNoPtrace = 77;

[[noreturn]] void run_child(const std::function<void()>& f) {
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(kNoPtrace);
  ::raise(SIGSTOP);  // the parent takes over here
  try {
    f();
  } catch (const std::exception&) {
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

Kill kill_at_call(std::int64_t n, const std::function<void()>& f) {
  const pid_t child = ::fork();
  expect(child >= 0, "fork failed");
  if (child == 0) run_child(f);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) return WEXITSTATUS(status) == kNoPtrace ? Kill::no_ptrace : Kill::failed;
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  bool entering = true;
  for (std::int64_t calls = 0;;) {
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status)) return WEXITSTATUS(status) == 0 ? Kill::finished : Kill::failed;
    if (WIFSIGNALED(status)) return Kill::failed;
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) continue;  // a signal: nobody sends any but us
    if (entering && ++calls == n) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return Kill::killed;
    }
    entering = !entering;
  }
}

}  // namespace octavo::testkit
