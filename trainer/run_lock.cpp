#include "trainer/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "core/error.h"
#include "core/file.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

/// @returns 0, or why not. EWOULDBLOCK: another process still holds it at the deadline.
int lock_until(int descriptor, Clock::time_point deadline) {
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return errno;
    if (Clock::now() >= deadline) return EWOULDBLOCK;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return 0;
}

/// "process 1234 on node7"
std::string this_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on {}", ::getpid(), host.data());
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& run, double patience)
    : descriptor_(::open((run / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  const std::filesystem::path path = run / "lock";
  if (descriptor_ < 0) throw UserError("cannot write " + system_reason(path.string(), errno));
  const auto wait =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(patience));
  const int error = lock_until(descriptor_, Clock::now() + wait);
  if (error == EWOULDBLOCK) {
    ::close(descriptor_);
    throw UserError(
        fmt::format("trainer.output: {} is in use by another training, {}. Wait for its end or "
                    "stop it (SIGTERM "
                    "makes it save), or name another folder",
                    run.string(), read_file(path)));
  }
  if (error != 0) {
    spdlog::warn("[trainer] {}. Nothing keeps a second training out of this folder.",
                 system_reason(path.string(), error));
    return;
  }
  // For that message only: a full disk is found by what is written next.
  const std::string holder = this_process();
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::pwrite(descriptor_, holder.data(), holder.size(), 0) < 0) {
    spdlog::warn("[trainer] {}", system_reason(path.string(), errno));
  }
}

RunLock::~RunLock() {
  ::close(descriptor_);
}

}  // namespace octavo
