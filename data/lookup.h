#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace octavo {

/// A hash table from 64-bit keys to 32-bit values, filled once and then only read: open addressing
/// in flat memory. The key ~0 can't be stored.
class FlatMap {
 public:
  /// Makes room for `entries` keys. Must come first.
  explicit FlatMap(std::size_t entries)
      : slots_(std::bit_ceil(entries * 2 + 2)), shift_(64 - std::countr_zero(slots_.size())) {}

  /// Adds a key, or keeps the value it has.
  void insert(std::uint64_t key, std::uint32_t value) {
    std::size_t i = start(key);
    while (slots_[i].key != kEmpty && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    if (slots_[i].key == key) return;
    expect(++used_ * 2 <= slots_.size(), "FlatMap: more keys than there is room for");
    slots_[i] = {key, value};
  }
  /// Null if the key isn't there.
  const std::uint32_t* find(std::uint64_t key) const {
    for (std::size_t i = start(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == key) return &slots_[i].value;
      if (slots_[i].key == kEmpty) return nullptr;
    }
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key = kEmpty;
    std::uint32_t value = 0;
  };
  std::size_t start(std::uint64_t key) const {
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15u) >> shift_);
  }

  std::vector<Slot> slots_;
  int shift_;
  std::size_t used_ = 0;
};

/// A set of byte strings with a value each, walked byte by byte.
class Trie {
 public:
  static constexpr std::int32_t kNone = -1;

  /// @param bytes  the sum of the strings' lengths, or more
  explicit Trie(std::size_t bytes) : edges_(bytes + 1) {}

  /// Adds a string, or keeps the value it has. value >= 0.
  void insert(std::string_view text, std::int32_t value) {
    std::uint32_t node = 0;
    for (const char c : text) {
      const auto next = static_cast<std::uint32_t>(values_.size());
      const std::uint32_t* child = edges_.find(edge(node, c));
      if (child == nullptr) {
        edges_.insert(edge(node, c), next);
        values_.push_back(kNone);
      }
      node = child == nullptr ? next : *child;
    }
    if (values_[node] == kNone) values_[node] = value;
  }
  /// Moves `node` (0 is the root) along one byte; false if no string goes on so.
  bool step(std::uint32_t& node, char c) const {
    const std::uint32_t* child = edges_.find(edge(node, c));
    if (child == nullptr) return false;
    node = *child;
    return true;
  }
  /// The value of the string that ends at `node`, or kNone.
  std::int32_t value(std::uint32_t node) const { return values_[node]; }

 private:
  static std::uint64_t edge(std::uint32_t node, char c) {
    return std::uint64_t{node} << 8 | static_cast<unsigned char>(c);
  }

  FlatMap edges_;
  std::vector<std::int32_t> values_{kNone};
};

/// Bytes of the UTF-8 character at the start of `text`, which is not empty: 1 to 4. A byte that
/// starts no well-formed character counts as one.
inline std::size_t character_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (length > text.size()) return 1;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 1;
  }
  return length;
}

}  // namespace octavo
