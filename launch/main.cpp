#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "comm/last_words.h"
#include "core/log.h"
#include "core/map_failure.h"
#include "launch/command.h"
#include "launch/commands.h"
#include "launch/wait_policy.h"

/// A standard descriptor that the caller has closed would be given to a file of ours, and messages
/// would be written into it. What takes its place here refuses to be read or written.
static void keep_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) == -1)
      open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int main(int argc, char** argv) {
  using namespace octavo;
  sleep_at_barriers(argv);
  keep_standard_descriptors();
  set_up_log(0);
  set_map_failure_speaker(say_line_at_once);
  // A reader that leaves is noticed by core/output.h; a log that can't be written stops nothing.
  std::signal(SIGPIPE, SIG_IGN);
  // A limit on the size of files is then what a full disk is: an error of write().
  std::signal(SIGXFSZ, SIG_IGN);
  return exit_code_of([&] {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    const std::vector<Command> commands{prepare_command(),  plan_command(),      train_command(),
                                        average_command(),  translate_command(), score_command(),
                                        evaluate_command(), doctor_command(),    inspect_command(),
                                        settings_command(), verify_command()};
    return run_command_line(arguments, commands);
  });
}
