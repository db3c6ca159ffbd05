#pragma once

#include <cstdint>
#include <functional>

namespace octavo::testkit {

/// How a child that was to be killed ended.
enum class Kill : unsigned char {
  killed,    ///< before its n-th system call was carried out
  finished,  ///< f returned first
  failed,    ///< f threw, or the child died otherwise
  no_ptrace  ///< this system lets nobody watch a child
};

/// Runs f in a child that is killed (SIGKILL) as it enters its n-th system call, n from 1. With n
/// running from 1 until `finished`, the child dies at every point at which anybody outside could
/// tell the difference. f must not use OpenMP.
Kill kill_at_call(std::int64_t n, const std::function<void()>& f);

}  // namespace octavo::testkit
