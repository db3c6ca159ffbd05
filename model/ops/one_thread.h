#pragma once

#include <omp.h>

namespace octavo {

/// While it lives, OpenMP tells libraries called from this thread to use one: oneDNN asks when a
/// primitive is made and when it runs, and our own threads take a part each.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
  ~OneThread() { omp_set_num_threads(before_); }

 private:
  int before_;
};

}  // namespace octavo
