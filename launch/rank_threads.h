#pragma once

namespace octavo {

/// Threads of a rank: what was asked for (0: nothing), else OMP_NUM_THREADS, else its share of the
/// host's processors.
int threads_per_rank(int asked, int ranks_on_host);

}  // namespace octavo
