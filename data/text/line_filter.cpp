#include "data/text/line_filter.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <exception>
#include <mutex>

#include "core/error.h"
#include "core/lines.h"
#include "core/parallel.h"

namespace octavo {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 18;

/// Some whole lines.
struct Block {
  std::string text;
  std::int64_t number = 0;      // from 0
  std::int64_t first_line = 1;  // from 1
};

/// Standard input in blocks.
class BlockReader {
 public:
  /// Blocks handed out so far.
  std::int64_t blocks() const { return blocks_; }
  /// Whether something can be read without waiting.
  static bool ready() {
    pollfd waiting{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    return ::poll(&waiting, 1, 0) != 0;  // what poll() can't say, reading will
  }

  /// The next lines: about a block, or fewer if more would have to be waited for. False at the end.
  bool next(Block& block) {
    std::string& text = block.text;
    text.assign(rest_);
    std::size_t lines = 0;  // bytes of whole lines; there are none in rest_
    while (!at_end_ && (lines == 0 || (text.size() < kBlockBytes && ready()))) {
      const std::size_t begin = text.size();
      read_more(text);
      const std::size_t newline = std::string_view(text).substr(begin).rfind('\n');
      if (newline != std::string_view::npos) lines = begin + newline + 1;
    }
    if (at_end_) lines = text.size();
    rest_.assign(text, lines);
    text.resize(lines);
    if (text.empty()) return false;
    block.number = blocks_++;
    block.first_line = next_line_;
    next_line_ += std::ranges::count(text, '\n');
    return true;
  }

 private:
  std::string rest_;  // the beginning of a line
  bool at_end_ = false;
  std::int64_t blocks_ = 0, next_line_ = 1;

  void read_more(std::string& text) {
    const std::size_t begin = text.size();
    text.resize(std::max(begin + kBlockBytes, 2 * begin));
    ssize_t n = 0;
    do {
      n = ::read(STDIN_FILENO, text.data() + begin, text.size() - begin);
    } while (n < 0 && errno == EINTR);
    if (n < 0) throw UserError("cannot read " + system_reason("standard input", errno));
    text.resize(begin + static_cast<std::size_t>(n));
    at_end_ = n == 0;
  }
};

/// Lets threads write one after the other, in the order of their blocks.
class Turns {
 public:
  /// Waits until all blocks before this one are written; false if one of them failed.
  bool wait(std::int64_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failed_ || next_ == number; });
    return !failed_;
  }
  /// To be called by the one whose turn it was.
  void done(bool failed) {
    {
      const std::lock_guard lock(mutex_);
      ++next_;
      failed_ = failed;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t next_ = 0;
  bool failed_ = false;
};

[[noreturn]] void refuse_bytes(const Block& block, std::size_t bad) {
  const std::string_view before = std::string_view(block.text).substr(0, bad);
  throw UserError(fmt::format(
      "standard input:{}: not UTF-8 at byte {} of the line. Convert the text, e.g. with 'iconv -f "
      "latin1 -t utf-8'.",
      block.first_line + std::ranges::count(before, '\n'), bad - (before.rfind('\n') + 1) + 1));
}

/// Appends to `out` what becomes of the block; of its lines before a bad one, if there is such.
void process(LineTool& tool, const Block& block, std::string& out) {
  const std::size_t bad = first_invalid_utf8(block.text);
  if (bad == block.text.size()) return tool.run_lines(block.text, block.first_line, out);
  const std::string_view before = std::string_view(block.text).substr(0, bad);
  tool.run_lines(before.substr(0, before.rfind('\n') + 1), block.first_line, out);
  refuse_bytes(block, bad);
}

}  // namespace

void filter_lines(const LineTool& tool, int threads,
                  const std::function<void(std::string_view)>& write) {
  BlockReader reader;
  std::mutex reading;
  Turns turns;
  const auto next = [&](Block& block) {
    const std::lock_guard lock(reading);
    // Before waiting for input, everything is written; after a failure nothing is waited for.
    if (!BlockReader::ready() && !turns.wait(reader.blocks())) return false;
    return reader.next(block);
  };
  parallel_for(threads, threads, 1, [&](std::int64_t, std::int64_t) {
    const std::unique_ptr<LineTool> mine = tool.clone();
    Block block;
    std::string out;
    while (next(block)) {
      out.clear();
      std::exception_ptr failure;
      try {
        process(*mine, block, out);
      } catch (...) {
        failure = std::current_exception();
      }
      if (!turns.wait(block.number)) return;
      try {
        write(out);
        if (failure) std::rethrow_exception(failure);
      } catch (...) {
        turns.done(true);
        throw;
      }
      turns.done(false);
    }
  });
}

}  // namespace octavo
