#include "trainer/progress.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

namespace octavo {
namespace {

constexpr std::string_view kClear = "\r\x1b[K";  // to the first column; erase to the line's end
constexpr auto kLeastPause = std::chrono::milliseconds(200);

void write_to_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n >= 0)
      text.remove_prefix(static_cast<std::size_t>(n));
    else if (errno != EINTR)
      return;  // the terminal has gone, and with it the place where one would say so
  }
}

}  // namespace

int terminal_columns(int descriptor) {
  constexpr int kUsual = 100, kLeast = 20;
  winsize size{};
  int columns = 0;
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  const char* environment = std::getenv("COLUMNS");
  if (columns == 0 && environment != nullptr) columns = std::atoi(environment);
  return std::max(kLeast, columns > 0 ? columns : kUsual) - 1;
}

/// Stands between the logger and its sinks: the line is erased before a message and drawn again
/// behind it. The lock is the sink's own, so that messages of other threads keep clear, too.
class LiveLine : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit LiveLine(std::vector<spdlog::sink_ptr> behind) : behind_(std::move(behind)) {}

  void draw(const std::string& line) {
    const std::lock_guard<std::mutex> lock(mutex_);
    line_ = line;
    write_to_stderr(std::string(kClear) + line_);
  }
  /// The line becomes ordinary text; later messages come below.
  void end() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!line_.empty()) write_to_stderr("\n");
    line_.clear();
  }
  const std::vector<spdlog::sink_ptr>& behind() const { return behind_; }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (!line_.empty()) write_to_stderr(kClear);
    for (const spdlog::sink_ptr& inner : behind_) {
      if (inner->should_log(message.level)) inner->log(message);
      inner->flush();  // before the line is drawn again
    }
    if (!line_.empty()) write_to_stderr(line_);
  }
  void flush_() override {
    for (const spdlog::sink_ptr& inner : behind_) inner->flush();
  }

 private:
  std::vector<spdlog::sink_ptr> behind_;
  std::string line_;
};

ProgressDisplay::ProgressDisplay(ProgressStyle style) {
  if (style != ProgressStyle::live) return;
  std::vector<spdlog::sink_ptr>& sinks = spdlog::default_logger()->sinks();
  live_ = std::make_shared<LiveLine>(sinks);
  sinks = {live_};
}

ProgressDisplay::~ProgressDisplay() {
  if (live_ == nullptr) return;
  if (waiting_) draw(*waiting_);
  live_->end();
  spdlog::default_logger()->sinks() = live_->behind();
}

bool ProgressDisplay::due() const {
  return live_ != nullptr && Clock::now() - drawn_ >= kLeastPause;
}

void ProgressDisplay::update(const Progress& progress) {
  if (due()) draw(progress);
}

void ProgressDisplay::report(const Progress& progress) {
  if (live_ == nullptr) {
    spdlog::info("[trainer] {}", plain_line(progress));
  } else if (due()) {
    draw(progress);
  } else {
    waiting_ = progress;
  }
}

void ProgressDisplay::draw(const Progress& progress) {
  // The width is asked for each time, so a window that changed is noticed at the next update.
  live_->draw(live_line(progress, terminal_columns(STDERR_FILENO)));
  drawn_ = Clock::now();
  waiting_.reset();
}

}  // namespace octavo
