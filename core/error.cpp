#include "core/error.h"

#include <system_error>

namespace octavo {

void expect(bool holds, const char* what) {
  if (!holds) throw InternalError(what);
}

std::string system_reason(const std::string& path, int error_number) {
  return path + ": " + std::generic_category().message(error_number);
}

}  // namespace octavo
