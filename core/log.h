#pragma once

namespace octavo {

/// Sets up spdlog for this process: "[area] message" on stderr, one line each, no time stamps;
/// warnings and errors start with "warning: " and "error: ".
/// Rank 0 says everything from `info` up; other ranks only errors, prefixed "rank R: ".
/// Call once at start, and again when the rank is known. Areas are the rooms: "[data] ...".
void set_up_log(int rank);

}  // namespace octavo
