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

/// The exit code of a process that ends because of `e`: 2, 3 or 4 as above, 4 for what is not ours.
int exit_code_of(const std::exception& e);

/// Throws InternalError with `what` unless `holds`. For contracts between rooms, not for users'
/// input.
void expect(bool holds, const char* what);

/// "path: reason of the last failed system call", e.g. "runs/a: No space left on device".
std::string system_reason(const std::string& path, int error_number);

}  // namespace octavo
