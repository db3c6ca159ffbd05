#include <csignal>
#include <string>
#include <vector>

#include "core/log.h"
#include "launch/command.h"
#include "launch/commands.h"

int main(int argc, char** argv) {
  using namespace octavo;
  set_up_log(0);
  // A reader that leaves is noticed by core/output.h; a log that can't be written stops nothing.
  std::signal(SIGPIPE, SIG_IGN);
  // A limit on the size of files is then what a full disk is: an error of write().
  std::signal(SIGXFSZ, SIG_IGN);
  return exit_code_of([&] {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    const std::vector<Command> commands{
        prepare_command(),  plan_command(),      train_command(),
        average_command(),  translate_command(), score_command(),
        evaluate_command(), inspect_command(),   settings_command()};
    return run_command_line(arguments, commands);
  });
}
