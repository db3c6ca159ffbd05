#include "core/output.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/error.h"

namespace octavo {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n >= 0)
      text.remove_prefix(static_cast<std::size_t>(n));
    else if (errno == EPIPE)
      throw OutputClosed();
    else if (errno != EINTR)
      throw UserError("cannot write " + system_reason("standard output", errno));
  }
}

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
  if (text.size() >= kBufferBytes) {  // not worth a copy
    flush();
    write_all(text);
    return;
  }
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) flush();
}

void StandardOutput::flush() {
  write_all(std::exchange(buffer_, {}));  // after a failure nothing is left to retry
}

}  // namespace octavo
