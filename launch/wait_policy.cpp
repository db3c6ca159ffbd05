#include "launch/wait_policy.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace octavo {

void sleep_at_barriers(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "1000", 1);
  // By its name: 'ps' and 'pkill' shall find it. Where the system refuses, waiting is slow, and
  // nothing is wrong.
  std::error_code ignored;
  execv(std::filesystem::read_symlink("/proc/self/exe", ignored).c_str(), argv);
}

}  // namespace octavo
