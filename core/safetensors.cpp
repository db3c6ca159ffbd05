#include "core/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/error.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

// Both sides copy numbers as they lie in memory.
static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::int64_t kLengthBytes = 8;
constexpr std::int64_t kAlignment = 8;                 // of the data section
constexpr std::int64_t kMaxHeaderBytes = 100'000'000;  // the limit of the reference implementation
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

constexpr std::array<std::pair<DType, std::string_view>, 6> kTypeNames{{{DType::f32, "F32"},
                                                                        {DType::f64, "F64"},
                                                                        {DType::bf16, "BF16"},
                                                                        {DType::i32, "I32"},
                                                                        {DType::i64, "I64"},
                                                                        {DType::u8, "U8"}}};

std::string_view type_name(DType type) {
  return std::ranges::find(kTypeNames, type, &std::pair<DType, std::string_view>::first)->second;
}

/// The bytes of a tensor; nothing if that is no number of 63 bits or a dimension is negative.
std::optional<std::int64_t> bytes_of_shape(DType type, std::span<const std::int64_t> shape) {
  // A dimension of 0 must not hide another one that is absurd, so all others are multiplied first.
  std::int64_t bytes = static_cast<std::int64_t>(bytes_of(type));
  bool empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0)
      empty = true;
    else if (__builtin_mul_overflow(bytes, size, &bytes))
      return std::nullopt;
  }
  return empty ? 0 : bytes;
}

/// Parses JSON that nests at most `kMaxDepth` deep and has no key twice in one object.
Json parse_header(std::string_view text) {
  constexpr int kMaxDepth = 3;  // the object, a tensor, its shape
  std::array<std::set<std::string>, kMaxDepth + 1> keys;
  const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxDepth) throw UserError("it nests too deep");
    if (event == Json::parse_event_t::object_start) keys[static_cast<std::size_t>(depth)].clear();
    if (event == Json::parse_event_t::key) {
      const auto& name = value.get_ref<const std::string&>();
      if (!keys[static_cast<std::size_t>(depth) - 1].insert(name).second)
        throw UserError(fmt::format("it has '{}' twice", name));
    }
    return true;
  };
  return Json::parse(text, check);
}

/// The list of integers, none negative, that tensor `name` has as `key`.
std::vector<std::int64_t> integers(const std::string& name, const Json& tensor, const char* key) {
  for (const Json& number : tensor.at(key))
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > INT64_MAX)
      throw UserError(fmt::format("'{}' has a bad {}", name, key));
  return tensor.at(key).get<std::vector<std::int64_t>>();
}

}  // namespace

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

void write_safetensors(AtomicFile& file, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[std::string(kMetadataKey)] = metadata;
  std::set<std::string_view> names;
  std::int64_t offset = 0;
  for (const NamedTensor& t : tensors) {
    expect(names.insert(t.name).second, "write_safetensors: two tensors of one name");
    expect(t.name != kMetadataKey, "write_safetensors: __metadata__ is no name for a tensor");
    const auto size = static_cast<std::int64_t>(t.bytes.size());
    expect(bytes_of_shape(t.type, t.shape) == size, "write_safetensors: bytes and shape disagree");
    header[t.name] = {{"dtype", type_name(t.type)},
                      {"shape", t.shape},
                      {"data_offsets", {offset, offset + size}}};
    offset += size;
  }
  std::string text = header.dump();
  while (text.size() % kAlignment != 0) text += ' ';
  const std::uint64_t length = text.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  for (const NamedTensor& t : tensors)
    for (auto rest = t.bytes; !rest.empty();
         rest = rest.subspan(std::min(rest.size(), kPieceBytes)))
      file.write(rest.first(std::min(rest.size(), kPieceBytes)));
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path), file_(path) {
  const auto size = static_cast<std::int64_t>(file_.bytes().size());
  if (size < kLengthBytes) damaged(fmt::format("it has only {} bytes", size));
  std::uint64_t length = 0;
  std::memcpy(&length, file_.bytes().data(), sizeof length);
  if (length > static_cast<std::uint64_t>(std::min(size - kLengthBytes, kMaxHeaderBytes)))
    damaged(fmt::format("its header claims {} bytes of a file of {}", length, size));
  data_begin_ = kLengthBytes + static_cast<std::int64_t>(length);
  const char* header = reinterpret_cast<const char*>(file_.bytes().data()) + kLengthBytes;
  try {
    read_header({header, length});
  } catch (const Json::exception& e) {
    damaged(fmt::format("its header: {}", json_reason(e)));
  } catch (const UserError& e) {
    damaged(fmt::format("its header: {}", e.what()));
  }
  check_ranges(size - data_begin_);
}

void SafetensorsFile::damaged(const std::string& what) const {
  throw UserError(fmt::format(
      "{} can't be read as safetensors: {}. The file is damaged or of another kind; use "
      "another copy or another checkpoint.",
      path_.string(), what));
}

void SafetensorsFile::read_header(std::string_view text) {
  const Json header = parse_header(text);
  if (!header.is_object()) throw UserError("it is not an object");
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadataKey) {
      metadata_ = value.get<std::map<std::string, std::string>>();
      continue;
    }
    const std::string& type = value.at("dtype").get_ref<const std::string&>();
    const auto known =
        std::ranges::find(kTypeNames, type, &std::pair<DType, std::string_view>::second);
    if (known == kTypeNames.end())
      throw UserError(
          fmt::format("'{}' has elements of type '{}', which can't be used here; F64, "
                      "F32, BF16, I64, I32 and U8 can",
                      name, type));
    const std::vector<std::int64_t> range = integers(name, value, "data_offsets");
    if (range.size() != 2) throw UserError(fmt::format("'{}' has a bad data_offsets", name));
    entries_.push_back({.name = name,
                        .type = known->first,
                        .shape = integers(name, value, "shape"),
                        .begin = range[0],
                        .end = range[1]});
  }
}

void SafetensorsFile::check_ranges(std::int64_t data_bytes) {
  std::ranges::sort(entries_, [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  std::int64_t end = 0;
  for (const Entry& entry : entries_) {
    if (entry.begin != end)
      damaged(fmt::format("'{}' begins at byte {} of the data, where {} was expected", entry.name,
                          entry.begin, end));
    if (entry.end < entry.begin || entry.end > data_bytes)
      damaged(fmt::format("'{}' ends at byte {} of the data, which has {}", entry.name, entry.end,
                          data_bytes));
    if (bytes_of_shape(entry.type, entry.shape) != entry.end - entry.begin)
      damaged(fmt::format("'{}' has {} bytes, which does not fit its shape {}", entry.name,
                          entry.end - entry.begin, shape_text(entry.shape)));
    end = entry.end;
  }
  if (end != data_bytes)
    damaged(fmt::format("its tensors end at byte {} of the data, which has {}", end, data_bytes));
  for (std::size_t i = 0; i < entries_.size(); ++i) by_name_.emplace(entries_[i].name, i);
}

const SafetensorsFile::Entry* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

std::span<const std::byte> SafetensorsFile::bytes(const Entry& entry) const {
  return file_.bytes().subspan(static_cast<std::size_t>(data_begin_ + entry.begin),
                               static_cast<std::size_t>(entry.end - entry.begin));
}

}  // namespace octavo
