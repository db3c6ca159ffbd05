#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::testkit {

/// How a program ended and what it said.
struct ProgramResult {
  int exit_code = 0;  ///< 128 + the signal's number if a signal ended it
  std::string out, err;
  std::int64_t peak_bytes = 0;  ///< most memory that was resident at a time
};

/// Runs a program to its end.
/// @param arguments  the first is the program's path.
/// @param input      its standard input.
ProgramResult run_program(const std::vector<std::string>& arguments, std::string_view input = "");

/// Runs a line of sh: for pipes and redirections. The arguments are "$1", "$2", ... in it.
ProgramResult run_shell(const std::string& line, const std::vector<std::string>& arguments = {});

}  // namespace octavo::testkit
