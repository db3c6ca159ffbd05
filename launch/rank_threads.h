#pragma once

namespace octavo {

/// Refuses a number of threads that makes no sense; 0 stands for a number that we choose.
/// @throws UserError
void check_threads(int asked);

/// Threads of a rank: what was asked for (0: nothing), else OMP_NUM_THREADS, else its share of the
/// host's processors. @throws UserError  as check_threads().
int threads_per_rank(int asked, int ranks_on_host);

}  // namespace octavo
