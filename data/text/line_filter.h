#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace octavo {

/// What is done to lines of text. It may keep buffers, so each thread needs its own.
class LineTool {
 public:
  virtual ~LineTool() = default;
  virtual std::unique_ptr<LineTool> clone() const = 0;
  /// Appends what becomes of whole lines.
  /// @param lines       well-formed UTF-8 with its '\n'; the last of all may lack that.
  /// @param first_line  the number of the first of them in the text, from 1.
  virtual void run_lines(std::string_view lines, std::int64_t first_line, std::string& out) = 0;
};

/// Reads standard input, gives its lines to `tool` and what it makes of them to `write`, in order,
/// byte for byte: lines end at '\n' only and keep their '\r'. When nothing more can be read without
/// waiting, what is there is finished and written, so that a program which waits for its answer
/// gets it.
/// @param threads  threads that work.
/// @throws UserError  a line is not well-formed UTF-8 (after writing what stands before it), or
///                    reading failed; whatever `tool` and `write` throw.
void filter_lines(const LineTool& tool, int threads,
                  const std::function<void(std::string_view)>& write);

}  // namespace octavo
