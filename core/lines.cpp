#include "core/lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "core/error.h"

namespace octavo {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;

/// Inflates one gzip member after another.
class Inflater {
 public:
  Inflater() {
    // 16: expect a gzip header and check its length and checksum at the end.
    if (inflateInit2(&state_, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&state_); }

  z_stream& state() { return state_; }
  /// Whether the last member is complete, so that the file may end here.
  bool between_members() const { return between_members_; }

  /// Inflates into `out`; returns the bytes made. 0 means that more input is needed.
  /// @throws UserError  damaged.
  std::size_t inflate_some(char* out, std::size_t size, const std::string& name) {
    state_.next_out = reinterpret_cast<Bytef*>(out);
    state_.avail_out = static_cast<uInt>(size);
    while (state_.avail_in > 0 && state_.avail_out == size) {
      if (std::exchange(between_members_, false)) inflateReset(&state_);
      const int status = ::inflate(&state_, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        between_members_ = true;
      } else if (status == Z_MEM_ERROR) {
        throw std::bad_alloc();
      } else if (status != Z_OK) {
        throw UserError(fmt::format("{}: the gzip data is damaged ({}); make the file again", name,
                                    state_.msg != nullptr ? state_.msg : zError(status)));
      }
    }
    return size - state_.avail_out;
  }

 private:
  z_stream state_{};
  bool between_members_ = true;
};

}  // namespace

/// Bytes of the file after decompression, piece by piece.
struct LineReader::Stream {
  std::string name;  // for messages
  int descriptor = -1;
  std::string input;           // as read
  std::string inflated;        // used with gzip only
  std::string_view available;  // bytes not handed out yet
  std::unique_ptr<Inflater> inflater;
  bool started = false;

  ~Stream() {
    if (descriptor > STDERR_FILENO) ::close(descriptor);
  }

  /// Appends at most `room` bytes behind the first `filled` of input; 0 at the end of the file.
  std::size_t read_input(std::size_t filled) {
    while (true) {
      const ssize_t n = ::read(descriptor, input.data() + filled, input.size() - filled);
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) throw UserError("cannot read " + system_reason(name, errno));
    }
  }

  /// Reads the first piece and looks for the two bytes every gzip file starts with.
  void start() {
    started = true;
    input.resize(kBufferBytes);
    std::size_t n = read_input(0);
    if (n == 1 && input[0] == '\x1f') n += read_input(1);
    if (n < 2 || input[0] != '\x1f' || input[1] != '\x8b') {
      available = {input.data(), n};
      return;
    }
    inflated.resize(kBufferBytes);
    inflater = std::make_unique<Inflater>();
    inflater->state().next_in = reinterpret_cast<Bytef*>(input.data());
    inflater->state().avail_in = static_cast<uInt>(n);
  }

  /// Makes `available` non-empty; false at the end.
  bool refill() {
    if (!started) {
      start();
      if (!available.empty()) return true;
    }
    if (inflater == nullptr) {
      available = {input.data(), read_input(0)};
      return !available.empty();
    }
    while (true) {
      available = {inflated.data(), inflater->inflate_some(inflated.data(), inflated.size(), name)};
      if (!available.empty()) return true;
      const std::size_t n = read_input(0);
      inflater->state().next_in = reinterpret_cast<Bytef*>(input.data());
      inflater->state().avail_in = static_cast<uInt>(n);
      if (n > 0) continue;
      if (inflater->between_members()) return false;
      throw UserError(fmt::format(
          "{}: the gzip data ends too early; the file was cut short, copy or make it again", name));
    }
  }
};

LineReader::LineReader(const std::filesystem::path& path) : stream_(std::make_unique<Stream>()) {
  if (path == "-") {
    stream_->name = "standard input";
    stream_->descriptor = STDIN_FILENO;
    return;
  }
  stream_->name = path.string();
  stream_->descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (stream_->descriptor < 0)
    throw UserError("cannot open " + system_reason(stream_->name, errno));
}

LineReader::~LineReader() = default;

std::optional<std::string_view> LineReader::next() {
  line_.clear();
  std::string_view line;
  while (true) {
    if (stream_->available.empty() && !stream_->refill()) {
      if (line_.empty()) return std::nullopt;
      line = line_;  // the last line, without '\n'
      break;
    }
    std::string_view& available = stream_->available;
    const std::size_t end = available.find('\n');
    if (end == std::string_view::npos) {
      line_ += std::exchange(available, {});
      continue;
    }
    line = available.substr(0, end);
    available.remove_prefix(end + 1);
    if (!line_.empty()) line = line_ += line;
    break;
  }
  ++line_number_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool LineReader::ready(int milliseconds) {
  if (stream_->available.find('\n') != std::string_view::npos) return true;
  if (stream_->inflater != nullptr && stream_->inflater->state().avail_in > 0) return true;
  pollfd waiting{.fd = stream_->descriptor, .events = POLLIN, .revents = 0};
  // What poll() can't say, reading will.
  return ::poll(&waiting, 1, milliseconds) != 0;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\v\f") == std::string_view::npos;
}

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  LineReader reader(path);
  std::vector<std::string> lines;
  while (const auto line = reader.next()) lines.emplace_back(*line);
  return lines;
}

namespace {

/// Length of the well-formed sequence at the start of [p, end), 0 if it is ill-formed.
/// Source: The Unicode Standard 15.0, table 3-7: the second byte's range depends on the first.
std::size_t sequence_length(const unsigned char* p, const unsigned char* end) {
  const unsigned char lead = *p;
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (static_cast<std::size_t>(end - p) < length) return 0;
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (p[1] < low || p[1] > high) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if ((p[i] & 0xC0) != 0x80) return 0;
  return length;
}

}  // namespace

std::size_t first_invalid_utf8(std::string_view text) {
  const auto* begin = reinterpret_cast<const unsigned char*>(text.data());
  const auto* end = begin + text.size();
  const auto* p = begin;
  while (p < end) {
    // Eight ASCII bytes at a time: most text is mostly ASCII.
    for (std::uint64_t word = 0; end - p >= 8; p += 8) {
      std::memcpy(&word, p, 8);
      if ((word & 0x8080808080808080u) != 0) break;
    }
    if (p == end) break;
    const std::size_t length = sequence_length(p, end);
    if (length == 0) break;
    p += length;
  }
  return static_cast<std::size_t>(p - begin);
}

bool is_valid_utf8(std::string_view text) {
  return first_invalid_utf8(text) == text.size();
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const std::size_t good = first_invalid_utf8(text);
    valid += text.substr(0, good);
    if (good == text.size()) break;
    valid += "\xEF\xBF\xBD";
    text.remove_prefix(good + 1);
  }
  return valid;
}

}  // namespace octavo
