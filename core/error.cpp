#include "core/error.h"

#include <system_error>

namespace octavo {

int exit_code_of(const std::exception& e) {
  if (dynamic_cast<const UserError*>(&e) != nullptr) return 2;
  if (dynamic_cast<const DeviceError*>(&e) != nullptr) return 3;
  return 4;
}

void expect(bool holds, const char* what) {
  if (!holds) throw InternalError(what);
}

std::string system_reason(const std::string& path, int error_number) {
  return path + ": " + std::generic_category().message(error_number);
}

}  // namespace octavo
