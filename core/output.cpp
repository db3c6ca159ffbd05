#include "core/output.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/error.h"

namespace octavo {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;

}  // namespace

StandardOutput::~StandardOutput() {
  try {
    flush();
  } catch (const OutputClosed&) {
    return;  // nobody misses it
  } catch (const std::exception& e) {
    spdlog::error("[core] {}", e.what());
  }
}

void StandardOutput::write(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) flush();
}

void StandardOutput::flush() {
  const std::string text = std::exchange(buffer_, {});  // after a failure nothing is left to retry
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t n = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (n >= 0)
      rest.remove_prefix(static_cast<std::size_t>(n));
    else if (errno == EPIPE)
      throw OutputClosed();
    else if (errno != EINTR)
      throw UserError("cannot write " + system_reason("standard output", errno));
  }
}

}  // namespace octavo
