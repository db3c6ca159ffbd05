#pragma once

#include <boost/program_options.hpp>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace octavo {

namespace po = boost::program_options;

/// One subcommand of `octavo`: a function that makes it stands in launch/NAME_command.cpp, is
/// declared in launch/commands.h and called in launch/main.cpp.
struct Command {
  std::string name;
  std::string summary;              ///< half a sentence for `octavo --help`
  std::string usage = "[options]";  ///< behind the name: "RUN|CHECKPOINT [options]"
  po::options_description options{};
  /// Options given by their place; they must be among `options` too.
  po::positional_options_description positional{};
  /// What `octavo NAME --help` shows behind the options; may be empty.
  std::function<std::string()> more_help{};
  /// Long options may begin with one dash, as those of the scripts whose place a command takes.
  bool one_dash = false;
  /// Commands that this one is a family of; it has no options then and does nothing by itself. The
  /// name of each begins with this one's: "text tokenize" in "text".
  std::vector<Command> subcommands{};
  /// Does the work and returns the exit code. Options have been parsed and stored by then.
  std::function<int(const po::variables_map&)> run{};
};

/// Runs what the arguments (without the program's name) ask for; returns the exit code.
/// @throws UserError  no such command or option, a value that does not parse.
int run_command_line(std::span<const std::string> arguments, std::span<const Command> commands);

/// Calls f and turns what it throws into one line on stderr and an exit code: UserError 2,
/// DeviceError and lack of memory 3, everything else 4 (a fault of ours). OutputClosed ends the
/// process as SIGPIPE would.
int exit_code_of(const std::function<int()>& f);

}  // namespace octavo
