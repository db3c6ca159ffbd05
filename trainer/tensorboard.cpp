#include "trainer/tensorboard.h"

#include <array>
#include <bit>
#include <cstring>

namespace octavo {
namespace {

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  constexpr std::uint32_t kPolynomial = 0x82f63b78;  // Castagnoli's, bits reversed
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}();

/// What TFRecord stores in place of a checksum, because checksums of data with checksums inside
/// are weak.
std::uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

template <typename T>
void append_raw(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little);
  std::array<char, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(T));
  out.append(bytes.data(), bytes.size());
}

// Protocol buffers: a field is its number and wire type, then its value.
enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void append_key(std::string& out, int field, Wire wire) {
  append_varint(out, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire));
}

void append_bytes(std::string& out, int field, std::string_view bytes) {
  append_key(out, field, Wire::bytes);
  append_varint(out, bytes.size());
  out += bytes;
}

// Fields of Event.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;

std::string event_at(double time, std::int64_t update) {
  std::string event;
  append_key(event, kWallTime, Wire::fixed64);
  append_raw(event, time);
  if (update != 0) {  // 0 is what is not there
    append_key(event, kStep, Wire::varint);
    append_varint(event, static_cast<std::uint64_t>(update));
  }
  return event;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char c : bytes)
    crc = crc >> 8 ^ kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

std::string record_frame(std::string_view data) {
  std::string frame;
  append_raw(frame, static_cast<std::uint64_t>(data.size()));
  append_raw(frame, masked_crc(frame));
  frame += data;
  append_raw(frame, masked_crc(data));
  return frame;
}

std::string first_event(double time) {
  std::string event = event_at(time, 0);
  append_bytes(event, kFileVersion, "brain.Event:2");
  return record_frame(event);
}

std::string restart_event(double time, std::int64_t update) {
  constexpr int kStatus = 1, kStart = 1;  // of SessionLog
  std::string session;
  append_key(session, kStatus, Wire::varint);
  append_varint(session, kStart);
  std::string event = event_at(time, update);
  append_bytes(event, kSessionLog, session);
  return record_frame(event);
}

std::string scalar_event(double time, std::int64_t update,
                         std::span<const std::pair<std::string, float>> scalars) {
  constexpr int kValue = 1;                  // of Summary
  constexpr int kTag = 1, kSimpleValue = 2;  // of Summary.Value
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    append_bytes(value, kTag, tag);
    append_key(value, kSimpleValue, Wire::fixed32);
    append_raw(value, number);
    append_bytes(summary, kValue, value);
  }
  std::string event = event_at(time, update);
  append_bytes(event, kSummary, summary);
  return record_frame(event);
}

}  // namespace octavo
