#include "tests/testkit/child.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <exception>

#include "core/error.h"

namespace octavo::testkit {
namespace {

constexpr uid_t kNobody = 65534;

[[noreturn]] void run_child(int pipe_end, const std::function<std::string()>& f) {
  std::string result;
  try {
    result = f();
  } catch (const std::exception& e) {
    result = std::string("threw: ") + e.what();
  }
  const bool sent =
      ::write(pipe_end, result.data(), result.size()) == static_cast<ssize_t>(result.size());
  ::_exit(sent ? 0 : 1);
}

}  // namespace

std::string in_child(const std::function<std::string()>& f) {
  std::array<int, 2> ends{};
  expect(::pipe(ends.data()) == 0, "pipe failed");
  const pid_t child = ::fork();
  expect(child >= 0, "fork failed");
  if (child == 0) run_child(ends[1], f);
  ::close(ends[1]);
  std::string result;
  std::array<char, 4096> piece{};
  while (true) {
    const ssize_t n = ::read(ends[0], piece.data(), piece.size());
    if (n <= 0) break;
    result.append(piece.data(), static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? result : "died";
}

std::string with_file_size_limit(std::int64_t bytes, const std::function<std::string()>& f) {
  return in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit then fails with EFBIG
    const rlimit limit{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
    expect(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit failed");
    return f();
  });
}

std::string as_ordinary_user(const std::function<std::string()>& f) {
  return in_child([&] {
    if (::geteuid() == 0)
      expect(::setgid(kNobody) == 0 && ::setuid(kNobody) == 0, "cannot give up root's rights");
    return f();
  });
}

}  // namespace octavo::testkit
