#include "launch/rank_threads.h"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace octavo {

int threads_per_rank(int asked, int ranks_on_host) {
  if (asked > 0) return asked;
  if (std::getenv("OMP_NUM_THREADS") != nullptr) return omp_get_max_threads();
  const auto processors = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return std::max(1, processors / ranks_on_host);
}

}  // namespace octavo
