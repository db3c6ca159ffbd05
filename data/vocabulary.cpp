#include "data/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/file.h"

namespace octavo {

namespace {

/// Control characters and '\' as \xNN and \\, so that a piece stays on its line.
std::string escaped(const std::string& piece) {
  std::string out;
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\')
      out += "\\\\";
    else if (byte < 0x20 || byte == 0x7F)
      out += fmt::format("\\x{:02X}", byte);
    else
      out += c;
  }
  return out;
}

}  // namespace

Vocabulary::Vocabulary(std::vector<std::string> pieces, SpecialIds special,
                       std::vector<std::int32_t> never_generated)
    : pieces_(std::move(pieces)), special_(special), never_generated_(std::move(never_generated)) {
  std::sort(never_generated_.begin(), never_generated_.end());
  for (const std::int32_t id : {special_.pad, special_.bos, special_.eos, special_.unk})
    expect(id >= 0 && id < size(), "Vocabulary: a special id is outside");
  hash_ = hash_bytes(text());
}

const std::string& Vocabulary::piece(std::int32_t id) const {
  expect(id >= 0 && id < size(), "Vocabulary::piece: no such id");
  return pieces_[static_cast<std::size_t>(id)];
}

std::string Vocabulary::text() const {
  std::string out;
  for (std::int32_t id = 0; id < size(); ++id) {
    const char* role = "piece";
    if (id == special_.pad)
      role = "pad";
    else if (id == special_.bos)
      role = "bos";
    else if (id == special_.eos)
      role = "eos";
    else if (id == special_.unk)
      role = "unk";
    else if (std::binary_search(never_generated_.begin(), never_generated_.end(), id))
      role = "mute";
    out += fmt::format("{}\t{}\t{}\n", id, role, escaped(pieces_[static_cast<std::size_t>(id)]));
  }
  return out;
}

void Vocabulary::write(const std::filesystem::path& path) const {
  write_file(path, text());
}

}  // namespace octavo
