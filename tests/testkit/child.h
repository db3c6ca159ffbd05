#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace octavo::testkit {

/// Runs f in a child process. Returns what f returned, or "threw: " and the message of the
/// exception that left it, or "died" if the child ended otherwise. The child must not use OpenMP:
/// a pool of threads does not survive fork().
std::string in_child(const std::function<std::string()>& f);

/// in_child() whose files may not grow beyond `bytes`: to f this looks like a full disk.
std::string with_file_size_limit(std::int64_t bytes, const std::function<std::string()>& f);

/// in_child() that gives up root's rights first, if it has them.
std::string as_ordinary_user(const std::function<std::string()>& f);

/// The message of the exception of type E that f throws, "nothing thrown" if it returns. Another
/// exception passes through.
template <typename E, typename F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing thrown";
}

}  // namespace octavo::testkit
