#pragma once

namespace octavo {

/// Makes threads that wait for others at a barrier look for a few microseconds and then sleep.
///
/// libgomp's own choice, to look for a millisecond, is 2 to 7 % faster on an idle machine and 5 to
/// 20 times slower where anything else needs the processors: it keeps the thread that all wait for
/// from running. It reads its choice from the environment when it is loaded, before main(), so the
/// program starts itself once more with GOMP_SPINCOUNT set. Does nothing if that or OMP_WAIT_POLICY
/// is set already.
void sleep_at_barriers(char** argv);

}  // namespace octavo
