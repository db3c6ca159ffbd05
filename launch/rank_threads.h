#pragma once

namespace octavo {

/// Threads of a rank, or of a command that runs alone: what was asked for (0: nothing), else
/// OMP_NUM_THREADS, else its share of the host's processors.
/// @throws UserError  the number asked for makes no sense.
int threads_per_rank(int asked, int ranks_on_host);

}  // namespace octavo
