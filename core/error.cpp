#include "core/error.h"

#include <fmt/format.h>

#include <filesystem>
#include <new>
#include <system_error>

namespace octavo {

Ending ending_of(const std::exception& e) {
  if (dynamic_cast<const UserError*>(&e) != nullptr) return {2, e.what()};
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&e))
    return {2, fmt::format("cannot use {}: {}", file->path1().string(), file->code().message())};
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

std::string json_reason(const std::exception& e) {
  const std::string_view text = e.what();
  const std::size_t place = text.find(" at line ");
  if (place != std::string_view::npos) {
    const std::string_view from = text.substr(place);
    return fmt::format("it is not JSON{}", from.substr(0, from.find(':')));
  }
  const std::size_t number_end = text.starts_with('[') ? text.find("] ") : std::string_view::npos;
  return std::string(number_end == std::string_view::npos ? text : text.substr(number_end + 2));
}

std::string system_reason(const std::string& path, int error_number) {
  return path + ": " + std::generic_category().message(error_number);
}

}  // namespace octavo
