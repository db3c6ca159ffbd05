#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace octavo {

/// The bytes of TensorBoard's event files, as far as scalars need them: TFRecord frames around
/// protocol buffers. Files begin with first_event() and restart_event().
///
/// Source: the formats are those of tensorflow/core/lib/io/record_writer.h and
/// tensorflow/core/util/event.proto; CRC-32C is RFC 3720, appendix B.4.

/// CRC-32C (Castagnoli).
std::uint32_t crc32c(std::string_view bytes);

/// A TFRecord frame: length, its checksum, data, its checksum.
std::string record_frame(std::string_view data);

/// Names the version of the format. @param time  seconds since 1970.
std::string first_event(double time);

/// Tells a reader that a run was resumed: what it has seen of `update` and later counts no more.
std::string restart_event(double time, std::int64_t update);

/// One value of each curve named, e.g. {"train/loss", 3.2}, at an update.
std::string scalar_event(double time, std::int64_t update,
                         std::span<const std::pair<std::string, float>> scalars);

}  // namespace octavo
