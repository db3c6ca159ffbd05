#include "tests/testkit/program.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "core/error.h"
#include "core/file.h"
#include "tests/testkit/temp_folder.h"

namespace octavo::testkit {
namespace {

/// Makes `descriptor` the file at `path`. Only in the child: ends it on failure.
void redirect(int descriptor, const std::filesystem::path& path, int flags) {
  const int file = ::open(path.c_str(), flags, 0600);
  if (file < 0 || ::dup2(file, descriptor) < 0) ::_exit(126);
  ::close(file);
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& arguments, std::string_view input) {
  const TempFolder folder;
  const auto in = folder.write("in", input), out = folder / "out", err = folder / "err";
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const pid_t child = ::fork();
  expect(child >= 0, "run_program: fork failed");
  if (child == 0) {
    redirect(STDIN_FILENO, in, O_RDONLY);
    redirect(STDOUT_FILENO, out, O_WRONLY | O_CREAT);
    redirect(STDERR_FILENO, err, O_WRONLY | O_CREAT);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  int status = 0;
  struct rusage usage {};
  expect(::wait4(child, &status, 0, &usage) == child, "run_program: wait4 failed");
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = read_file(out),
          .err = read_file(err),
          .peak_bytes = usage.ru_maxrss * 1024};
}

ProgramResult run_shell(const std::string& line, const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"/bin/sh", "-c", line, "sh"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_program(all);
}

}  // namespace octavo::testkit
