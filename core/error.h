#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace octavo {

/// The user can mend it: a wrong setting, a bad file, a full disk. Exit code 2.
/// The message says where, what, why and what to do next.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A device, a driver or a peer failed. Exit code 3.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A fault of ours. Exit code 4.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// How a process ends because of an exception: its exit code and what it says.
struct Ending {
  int exit_code = 4;
  std::string message;
};

/// UserError and what the file system refuses give 2, DeviceError and lack of memory 3, everything
/// else 4.
Ending ending_of(const std::exception& e);

/// Throws InternalError with `what` unless `holds`. For contracts between rooms, not for users'
/// input.
void expect(bool holds, const char* what);

/// What a JSON parser's exception says that helps a user: "it is not JSON at line 3, column 7" or
/// "key 'update' not found".
std::string json_reason(const std::exception& e);

/// "path: reason of the last failed system call", e.g. "runs/a: No space left on device".
std::string system_reason(const std::string& path, int error_number);

}  // namespace octavo
