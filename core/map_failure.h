#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace octavo {

/// A mapped file that is cut short while it is in use, or whose disk fails, ends its reader by
/// SIGBUS. For files noted here the process says instead which file it was and leaves with code 2.
///
/// The handler is installed with the first file. Of more than 64 files at a time the others are not
/// noted. Other reasons for a SIGBUS end the process as before.
void note_mapping(std::span<const std::byte> bytes, const std::filesystem::path& path);
void forget_mapping(std::span<const std::byte> bytes);

/// Who says it, instead of standard error: gets one line with its '\n'. A signal handler calls it.
void set_map_failure_speaker(void (*speaker)(const char* line));

}  // namespace octavo
