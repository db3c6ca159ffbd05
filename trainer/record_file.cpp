#include "trainer/record_file.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/error.h"

namespace octavo {

RecordFile::RecordFile(std::filesystem::path path)
    : path_(std::move(path)),
      descriptor_(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
  struct stat status {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) {
    const int error = errno;
    if (descriptor_ >= 0) ::close(descriptor_);
    throw UserError("cannot write " + system_reason(path_.string(), error));
  }
  size_ = status.st_size;
}

RecordFile::~RecordFile() {
  ::close(descriptor_);  // every record has gone to the system before
  if (lost_ > 0)
    spdlog::warn("[trainer] the last {} records are missing in {}", lost_, path_.string());
}

bool RecordFile::append(std::string_view record) {
  if (const int error = try_append(record); error != 0) {
    if (lost_ == 0)
      spdlog::warn(
          "[trainer] cannot write {}. Training goes on without this log and writes on as soon as "
          "it can: make room or mend the folder.",
          system_reason(path_.string(), error));
    ++lost_;
    return false;
  }
  if (lost_ > 0)
    spdlog::warn("[trainer] {} is written again; {} records before this one are missing",
                 path_.string(), lost_);
  lost_ = 0;
  return true;
}

int RecordFile::try_append(std::string_view record) {
  if (torn_) {
    if (::ftruncate(descriptor_, size_) != 0) return errno;
    torn_ = false;
  }
  int error = 0;
  for (std::string_view rest = record; !rest.empty() && error == 0;) {
    const ssize_t n = ::write(descriptor_, rest.data(), rest.size());
    if (n >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(n));
      torn_ = !rest.empty();
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (error == 0) {
    size_ += static_cast<std::int64_t>(record.size());
  } else if (torn_ && ::ftruncate(descriptor_, size_) == 0) {
    torn_ = false;
  }
  return error;
}

}  // namespace octavo
