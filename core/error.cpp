#include "core/error.h"

#include <new>
#include <system_error>

namespace octavo {

Ending ending_of(const std::exception& e) {
  if (dynamic_cast<const UserError*>(&e) != nullptr) return {2, e.what()};
  if (dynamic_cast<const DeviceError*>(&e) != nullptr) return {3, e.what()};
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr)
    return {3,
            "out of memory: the system refused to give more; use smaller batches or fewer ranks "
            "on this machine"};
  return {4, std::string(e.what()) +
                 ". This is a fault of octavo: please report it with the command that led here."};
}

void expect(bool holds, const char* what) {
  if (!holds) throw InternalError(what);
}

std::string system_reason(const std::string& path, int error_number) {
  return path + ": " + std::generic_category().message(error_number);
}

}  // namespace octavo
