#include "core/folder_lock.h"

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

FolderLock::FolderLock(const std::filesystem::path& folder, std::string_view setting,
                       double patience) {
  const std::filesystem::path path = folder / "lock";
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    throw UserError(fmt::format("{}: cannot write {}; may you write into this folder?", setting,
                                system_reason(path.string(), errno)));
  }
  const auto wait =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(patience));
  const int error = lock_until(descriptor_, Clock::now() + wait);
  if (error == EWOULDBLOCK) {
    ::close(descriptor_);
    throw UserError(
        fmt::format("{}: {} is in use by {}. Wait for its end, end it, or name another folder",
                    setting, folder.string(), read_file(path)));
  }
  if (error != 0) {
    spdlog::warn("{}: cannot lock {}. Nothing keeps a second process out of this folder", setting,
                 system_reason(path.string(), error));
    return;
  }
  // For that message only: a full disk is found by what is written next.
  const std::string holder = this_process();
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::pwrite(descriptor_, holder.data(), holder.size(), 0) < 0) {
    spdlog::warn("{}: {}", setting, system_reason(path.string(), errno));
  }
}

FolderLock::~FolderLock() {
  ::close(descriptor_);
}

}  // namespace octavo
