#include "launch/rank_threads.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.h"

namespace octavo {

namespace {

void check_threads(const char* name, int asked) {
  constexpr int kMostThreads = 1024;
  if (asked >= 0 && asked <= kMostThreads) return;
  throw UserError(fmt::format("{} is {}; it must be between 1 and {}, or 0 to let octavo choose",
                              name, asked, kMostThreads));
}

}  // namespace

int threads_per_rank(int asked, int ranks_on_host) {
  check_threads("--threads", asked);
  if (asked > 0) return asked;
  if (std::getenv("OMP_NUM_THREADS") != nullptr) {
    check_threads("OMP_NUM_THREADS", omp_get_max_threads());
    return omp_get_max_threads();
  }
  return std::max(1, omp_get_num_procs() / ranks_on_host);
}

}  // namespace octavo
