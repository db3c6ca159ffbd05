// What the tests of comm run under mpirun: test_comm_mpi SCENARIO [ARGUMENT]. Exit code 0 is a
// pass; a failed expectation ends all ranks with code 4 and says which.
// It also stands in for octavo: `test_comm_mpi train SCENARIO ...` prints how it was called.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include "core/error.h"
#include "tests/comm/scenarios.h"

namespace {

void say_how_called(int argc, char** argv) {
  std::string line = "called with";
  for (int i = 1; i < argc; ++i) line += fmt::format(" '{}'", argv[i]);
  const char* threads = std::getenv("OMP_NUM_THREADS");
  line += fmt::format(" OMP_NUM_THREADS={}", threads == nullptr ? "" : threads);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace octavo;
  const bool trains = argc > 2 && std::string_view(argv[1]) == "train";
  const std::string name = argc > 1 ? argv[trains ? 2 : 1] : "";
  const double argument = argc > 2 && !trains ? std::stod(argv[2]) : 0.0;
  if (trains) say_how_called(argc, argv);
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
    return ending_of(e).exit_code;
  }
}
