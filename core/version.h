#pragma once

#include <string_view>

namespace octavo {

/// The one place where the version is kept; CMakeLists.txt reads it from here.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace octavo
