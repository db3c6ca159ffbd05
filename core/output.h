#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace octavo {

/// Whoever read our standard output has gone, as in `octavo translate ... | head`. No error: the
/// program ends as if by SIGPIPE.
class OutputClosed : public std::exception {
 public:
  const char* what() const noexcept override { return "standard output was closed"; }
};

/// The only way to standard output: every write is checked, so that a full disk is an error and not
/// a shorter file. main() has to ignore SIGPIPE.
class StandardOutput {
 public:
  StandardOutput() = default;
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;
  /// Writes what is left; a failure is only logged, so call flush() where the output ends.
  ~StandardOutput();

  /// Buffers. @throws UserError, OutputClosed  as flush().
  void write(std::string_view text);
  /// @throws UserError     the system refuses (disk full).
  /// @throws OutputClosed  the reader has gone.
  void flush();

 private:
  std::string buffer_;
};

}  // namespace octavo
