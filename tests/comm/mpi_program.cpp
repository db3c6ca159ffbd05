// What the tests of comm run under mpirun: test_comm_mpi SCENARIO [ARGUMENT]. Exit code 0 is a
// pass; a failed expectation ends all ranks with code 4 and says which.
#include <fmt/format.h>

#include <exception>
#include <string>

#include "core/error.h"
#include "tests/comm/scenarios.h"

int main(int argc, char** argv) {
  using namespace octavo;
  const std::string name = argc > 1 ? argv[1] : "";
  const double argument = argc > 2 ? std::stod(argv[2]) : 0.0;
  const auto found = scenarios().find(name);
  if (found == scenarios().end()) {
    fmt::print(stderr, "no scenario '{}'\n", name);
    return 1;
  }
  try {
    found->second(argument);
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "main: {}\n", e.what());
    return exit_code_of(e);
  }
}
