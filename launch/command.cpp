#include "launch/command.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>
#include <exception>

#include "core/error.h"
#include "core/output.h"
#include "core/suggest.h"
#include "core/version.h"
#include "launch/version.h"

namespace octavo {
namespace {

constexpr const char* kUnexpected = "unexpected-arguments";

void print(const std::string& text) {
  StandardOutput out;
  out.write(text);
  out.flush();
}

bool is_positional(const Command& command, const std::string& option) {
  const unsigned count = std::min(command.positional.max_total_count(), 100u);
  for (unsigned i = 0; i < count; ++i)
    if (command.positional.name_for_position(i) == option) return true;
  return false;
}

std::string list_of(std::span<const Command> commands) {
  std::size_t width = 0;
  for (const Command& command : commands) width = std::max(width, command.name.size());
  std::string text;
  for (const Command& command : commands)
    text += fmt::format("  {:<{}}  {}\n", command.name, width, command.summary);
  return text;
}

std::string overview(std::span<const Command> commands) {
  return fmt::format(
      "octavo {}: trains Transformers that translate, on many processors at once\n\n"
      "usage: octavo COMMAND [arguments]\n\n"
      "{}\n'octavo COMMAND --help' explains a command; 'octavo --version' tells the version.\n",
      kVersion, list_of(commands));
}

std::string overview_of_family(const Command& family) {
  return fmt::format("usage: octavo {} {}\n{}\n\n{}\n'octavo {} NAME --help' explains one.\n",
                     family.name, family.usage, family.summary, list_of(family.subcommands),
                     family.name);
}

std::string help_of(const Command& command) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& option : command.options.options()) {
    const std::string parameter = option->format_parameter();
    // Boost's own is "-l [ --language ]".
    const std::string name = option->format_name();
    const std::string brief = name.starts_with("--") ? "" : name.substr(0, 2) + ", ";
    rows.emplace_back(is_positional(command, option->long_name())
                          ? parameter
                          : fmt::format("{}--{} {}", brief, option->long_name(), parameter),
                      option->description());
  }
  rows.emplace_back("--help", "this text");
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.first.size());
  std::string text =
      fmt::format("usage: octavo {} {}\n{}\n\n", command.name, command.usage, command.summary);
  for (const auto& [left, right] : rows) text += fmt::format("  {:<{}}  {}\n", left, width, right);
  if (command.more_help) text += "\n" + command.more_help();
  return text;
}

/// "; did you mean 'X'? MORE" or "; MORE".
std::string suggestion(const std::string& word, const std::vector<std::string>& candidates,
                       const std::string& more) {
  const std::string near = did_you_mean(word, candidates);
  return (near.empty() ? ";" : near) + " " + more;
}

/// What Boost found wrong, in our words.
[[noreturn]] void refuse(const Command& command, const po::error& error) {
  const std::string hint = fmt::format("'octavo {} --help' lists them.", command.name);
  if (const auto* unknown = dynamic_cast<const po::unknown_option*>(&error)) {
    std::vector<std::string> names{"--help"};
    for (const auto& option : command.options.options()) {
      if (!is_positional(command, option->long_name())) names.push_back("--" + option->long_name());
    }
    std::string name = unknown->get_option_name();
    name = name.substr(0, name.find('='));
    throw UserError(fmt::format("no option '{}'{}", name, suggestion(name, names, hint)));
  }
  if (const auto* missing = dynamic_cast<const po::required_option*>(&error)) {
    std::string name = missing->get_option_name();
    const std::string bare = name.substr(std::min(name.find_first_not_of('-'), name.size()));
    if (is_positional(command, bare)) name = command.options.find(bare, false).semantic()->name();
    throw UserError(
        fmt::format("{} is missing; usage: octavo {} {}", name, command.name, command.usage));
  }
  throw UserError(
      fmt::format("{}; 'octavo {} --help' explains the options", error.what(), command.name));
}

po::variables_map parse(const Command& command, std::span<const std::string> arguments) {
  po::options_description options;
  options.add(command.options);
  options.add_options()("help", "this text")(kUnexpected, po::value<std::vector<std::string>>());
  po::positional_options_description positional = command.positional;
  if (positional.max_total_count() != std::numeric_limits<unsigned>::max())
    positional.add(kUnexpected, -1);
  // Guessing would take --b for --beam, and break scripts when another option with b comes.
  int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  if (command.one_dash) style |= po::command_line_style::allow_long_disguise;
  po::variables_map values;
  po::store(po::command_line_parser({arguments.begin(), arguments.end()})
                .options(options)
                .positional(positional)
                .style(style)
                .run(),
            values);
  if (values.count("help") != 0) return values;
  if (values.count(kUnexpected) != 0)
    throw UserError(fmt::format("unexpected argument '{}'; usage: octavo {} {}",
                                values[kUnexpected].as<std::vector<std::string>>().front(),
                                command.name, command.usage));
  po::notify(values);
  return values;
}

int run_command(const Command& command, std::span<const std::string> arguments) {
  po::variables_map values;
  try {
    values = parse(command, arguments);
  } catch (const po::error& error) {
    refuse(command, error);
  }
  if (values.count("help") == 0) return command.run(values);
  print(help_of(command));
  return 0;
}

/// The command of that name. @param family  "text " for those of `text`, else "".
const Command& chosen(const std::string& name, std::span<const Command> commands,
                      const std::string& family) {
  const auto command = std::ranges::find(commands, family + name, &Command::name);
  if (command != commands.end()) return *command;
  std::vector<std::string> names;
  for (const Command& c : commands) names.push_back(c.name.substr(family.size()));
  throw UserError(
      fmt::format("no command '{}{}'{}", family, name,
                  suggestion(name, names, fmt::format("'octavo {}--help' lists them.", family))));
}

int run_family(const Command& family, std::span<const std::string> arguments) {
  if (arguments.empty())
    throw UserError(fmt::format("no name given; 'octavo {} --help' lists them", family.name));
  if (arguments.front() == "--help" || arguments.front() == "-h") {
    print(overview_of_family(family));
    return 0;
  }
  return run_command(chosen(arguments.front(), family.subcommands, family.name + " "),
                     arguments.subspan(1));
}

}  // namespace

int run_command_line(std::span<const std::string> arguments, std::span<const Command> commands) {
  if (arguments.empty()) throw UserError("no command given; 'octavo --help' lists them");
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h") {
    print(overview(commands));
    return 0;
  }
  if (name == "--version") {
    print(fmt::format("octavo {} ({})\n", kVersion, kRevision));
    return 0;
  }
  const Command& command = chosen(name, commands, "");
  return command.subcommands.empty() ? run_command(command, arguments.subspan(1))
                                     : run_family(command, arguments.subspan(1));
}

int exit_code_of(const std::function<int()>& f) {
  const auto end = [](const std::exception& e) {
    const Ending ending = ending_of(e);
    spdlog::error("{}", ending.message);
    return ending.exit_code;
  };
  try {
    return f();
  } catch (const OutputClosed&) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
    return 0;
  } catch (const std::exception& e) {
    return end(e);
  } catch (...) {
    return end(InternalError("something unknown was thrown"));
  }
}

}  // namespace octavo
