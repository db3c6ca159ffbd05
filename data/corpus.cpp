#include "data/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"

namespace octavo {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::string_view kMagic{"octcorp\n", 8};
constexpr std::uint32_t kVersion = 1;
constexpr std::int64_t kRowsPerBlock = 65536;
constexpr std::int64_t kHeaderBytes = 16;
constexpr std::int64_t kTrailerBytes = 32;  // footer's size, its hash in hexadecimal, magic
constexpr std::size_t kHashDigits = 16;

constexpr std::pair<ColumnType, std::string_view> kTypeNames[] = {
    {ColumnType::tokens16, "tokens16"},
    {ColumnType::tokens32, "tokens32"},
    {ColumnType::text, "text"},
    {ColumnType::number, "number"},
};

std::string_view name_of(ColumnType type) {
  return kTypeNames[static_cast<std::size_t>(type)].second;
}

std::int64_t element_bytes(ColumnType type) {
  switch (type) {
    case ColumnType::tokens16:
      return 2;
    case ColumnType::tokens32:
      return 4;
    case ColumnType::text:
      return 1;
    case ColumnType::number:
      return 8;
  }
  throw InternalError("element_bytes: no such column type");
}

/// Bytes as they lie in memory.
template <typename T>
std::string_view raw(const T* elements, std::size_t count) {
  return {reinterpret_cast<const char*>(elements), count * sizeof(T)};
}

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + 7) / 8 * 8;
}

/// Bytes of the offsets that precede a section's data; numbers need none.
std::int64_t offsets_bytes(ColumnType type, std::int64_t rows) {
  return type == ColumnType::number ? 0 : aligned((rows + 1) * 4);
}

}  // namespace

CorpusWriter::CorpusWriter(const std::filesystem::path& path, std::vector<Column> columns)
    : file_(path),
      path_(path),
      columns_(std::move(columns)),
      pending_(columns_.size()),
      elements_(columns_.size(), 0) {
  expect(!columns_.empty(), "CorpusWriter: no columns");
  const std::uint32_t version[2] = {kVersion, 0};
  file_.write(kMagic);
  file_.write(raw(version, 2));
}

CorpusWriter::Pending& CorpusWriter::pending(std::size_t column, bool type_fits) {
  expect(type_fits, "CorpusWriter: the column has another type");
  expect(static_cast<std::int64_t>(pending_[column].ends.size()) == rows_ % kRowsPerBlock,
         "CorpusWriter: a column was set twice in one row");
  return pending_[column];
}

void CorpusWriter::set_tokens(std::size_t column, std::span<const std::int32_t> ids) {
  const ColumnType type = columns_[column].type;
  Pending& p = pending(column, type == ColumnType::tokens16 || type == ColumnType::tokens32);
  if (type == ColumnType::tokens32) {
    p.bytes += raw(ids.data(), ids.size());
  } else {
    for (const std::int32_t id : ids) {
      expect(id >= 0 && id < 65536, "CorpusWriter: an id does not fit into 16 bits");
      const auto narrow = static_cast<std::uint16_t>(id);
      p.bytes += raw(&narrow, 1);
    }
  }
  append(column, ids.size());
}

void CorpusWriter::set_text(std::size_t column, std::string_view bytes) {
  pending(column, columns_[column].type == ColumnType::text).bytes += bytes;
  append(column, bytes.size());
}

void CorpusWriter::set_number(std::size_t column, std::uint64_t number) {
  pending(column, columns_[column].type == ColumnType::number).bytes += raw(&number, 1);
  append(column, 1);
}

void CorpusWriter::append(std::size_t column, std::size_t count) {
  std::vector<std::uint32_t>& ends = pending_[column].ends;
  const std::uint64_t end = (ends.empty() ? 0 : ends.back()) + std::uint64_t{count};
  if (end > UINT32_MAX) {
    throw UserError(
        fmt::format("{}: {} rows of column '{}' are too long to be kept; drop lines of "
                    "this length from the text.",
                    path_.string(), kRowsPerBlock, columns_[column].name));
  }
  ends.push_back(static_cast<std::uint32_t>(end));
  elements_[column] += static_cast<std::int64_t>(count);
}

void CorpusWriter::end_row() {
  ++rows_;
  const std::int64_t in_block = (rows_ - 1) % kRowsPerBlock + 1;
  for (const Pending& p : pending_) {
    expect(static_cast<std::int64_t>(p.ends.size()) == in_block,
           "CorpusWriter: a column was not set");
  }
  if (in_block == kRowsPerBlock) flush_block();
}

void CorpusWriter::flush_block() {
  constexpr char kZeros[8] = {};
  const auto pad = [&] {
    file_.write(
        std::string_view(kZeros, static_cast<std::size_t>(aligned(file_.size()) - file_.size())));
  };
  std::vector<std::int64_t>& begins = blocks_.emplace_back();
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    Pending& p = pending_[c];
    begins.push_back(file_.size());
    if (columns_[c].type != ColumnType::number) {
      const std::uint32_t zero = 0;
      file_.write(raw(&zero, 1));
      file_.write(raw(p.ends.data(), p.ends.size()));
      pad();
    }
    file_.write(p.bytes);
    pad();
    p.ends.clear();
    p.bytes.clear();
  }
}

void CorpusWriter::commit(const std::map<std::string, std::string>& metadata) {
  if (rows_ % kRowsPerBlock != 0) flush_block();
  nlohmann::json columns = nlohmann::json::array();
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    columns.push_back({{"name", columns_[c].name},
                       {"type", name_of(columns_[c].type)},
                       {"elements", elements_[c]}});
  }
  const std::string footer =
      nlohmann::json{{"rows", rows_},     {"rows_per_block", kRowsPerBlock}, {"columns", columns},
                     {"blocks", blocks_}, {"content_hash", file_.hash()},    {"metadata", metadata}}
          .dump();
  const std::uint64_t size = footer.size();
  file_.write(footer);
  file_.write(raw(&size, 1));
  file_.write(hash_bytes(footer));
  file_.write(kMagic);
  file_.commit();
}

Corpus::Corpus(const std::filesystem::path& path) : path_(path), file_(path) {
  const std::string_view all = raw(file_.bytes().data(), file_.bytes().size());
  if (all.size() < kHeaderBytes || !all.starts_with(kMagic)) {
    throw UserError(
        fmt::format("{}: this is not a corpus of octavo. 'octavo prepare' makes one from text.",
                    path_.string()));
  }
  std::uint32_t version = 0;
  std::memcpy(&version, all.data() + kMagic.size(), sizeof version);
  if (version != kVersion) {
    throw UserError(fmt::format(
        "{}: a corpus of format {}, but this program reads format {}. Run 'octavo prepare' again.",
        path_.string(), version, kVersion));
  }
  if (all.size() < kHeaderBytes + kTrailerBytes || !all.ends_with(kMagic))
    damaged("its end is missing");
  const std::string_view trailer = all.substr(all.size() - kTrailerBytes);
  std::uint64_t size = 0;
  std::memcpy(&size, trailer.data(), sizeof size);
  if (size > all.size() - kHeaderBytes - kTrailerBytes)
    damaged("its footer is larger than the file");
  content_bytes_ = static_cast<std::int64_t>(all.size() - kTrailerBytes - size);
  const std::string_view footer = all.substr(static_cast<std::size_t>(content_bytes_), size);
  if (hash_bytes(footer) != trailer.substr(sizeof size, kHashDigits))
    damaged("its footer's checksum differs");
  try {
    read_footer(footer);
  } catch (const nlohmann::json::exception& e) {
    damaged(fmt::format("its footer can't be read ({})", json_reason(e)));
  }
}

void Corpus::read_footer(std::string_view footer) {
  const auto json = nlohmann::json::parse(footer);
  json.at("rows").get_to(rows_);
  json.at("content_hash").get_to(content_hash_);
  json.at("metadata").get_to(metadata_);
  if (json.at("rows_per_block") != kRowsPerBlock) damaged("its blocks have an unknown size");
  for (const auto& column : json.at("columns")) {
    const auto type = column.at("type").get<std::string>();
    const auto known = std::find_if(std::begin(kTypeNames), std::end(kTypeNames),
                                    [&](const auto& entry) { return entry.second == type; });
    if (known == std::end(kTypeNames)) damaged(fmt::format("it has a column of type '{}'", type));
    columns_.push_back({.name = column.at("name"), .type = known->first});
    elements_.push_back(column.at("elements"));
  }
  const auto blocks = json.at("blocks").get<std::vector<std::vector<std::int64_t>>>();
  if (static_cast<std::int64_t>(blocks.size()) != (rows_ + kRowsPerBlock - 1) / kRowsPerBlock)
    damaged("the number of its blocks is wrong");
  std::vector<std::int64_t> begins;
  for (const auto& block : blocks) {
    if (block.size() != columns_.size()) damaged("a block has the wrong number of columns");
    begins.insert(begins.end(), block.begin(), block.end());
  }
  begins.push_back(content_bytes_);
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    const auto block = static_cast<std::int64_t>(i / columns_.size());
    const ColumnType type = columns_[i % columns_.size()].type;
    const std::int64_t rows = std::min(kRowsPerBlock, rows_ - block * kRowsPerBlock);
    const std::int64_t least = type == ColumnType::number ? rows * 8 : offsets_bytes(type, rows);
    const std::int64_t bytes = begins[i + 1] - begins[i];
    if (begins[i] < kHeaderBytes || begins[i] % 8 != 0 || bytes < least)
      damaged("a section is misplaced");
    sections_.push_back({.begin = file_.bytes().data() + begins[i], .bytes = bytes});
  }
}

void Corpus::damaged(const std::string& what) const {
  throw UserError(
      fmt::format("{}: the corpus is damaged: {}. The copy was cut short or the disk is faulty; "
                  "remove the file "
                  "and run 'octavo prepare' again.",
                  path_.string(), what));
}

bool Corpus::has(std::string_view name) const {
  return std::any_of(columns_.begin(), columns_.end(),
                     [&](const Column& c) { return c.name == name; });
}

std::size_t Corpus::column(std::string_view name) const {
  std::string names;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (columns_[c].name == name) return c;
    names += (names.empty() ? "" : ", ") + columns_[c].name;
  }
  throw UserError(fmt::format("{}: no column '{}'; it has {}. Run 'octavo prepare' again.",
                              path_.string(), name, names));
}

const Corpus::Section& Corpus::section(std::size_t column, std::int64_t row) const {
  expect(column < columns_.size() && row >= 0 && row < rows_, "Corpus: no such row or column");
  return sections_[static_cast<std::size_t>(row / kRowsPerBlock) * columns_.size() + column];
}

Corpus::Cell Corpus::cell(std::size_t column, std::int64_t row) const {
  const Section& s = section(column, row);
  const ColumnType type = columns_[column].type;
  const std::int64_t rows = std::min(kRowsPerBlock, rows_ - row / kRowsPerBlock * kRowsPerBlock);
  std::uint32_t ends[2];
  std::memcpy(ends, s.begin + row % kRowsPerBlock * 4, sizeof ends);
  const std::int64_t before = offsets_bytes(type, rows), size = element_bytes(type);
  if (ends[0] > ends[1] || before + ends[1] * size > s.bytes)
    damaged(fmt::format("row {} of column '{}' is out of bounds", row, columns_[column].name));
  return {.begin = s.begin + before + ends[0] * size, .elements = ends[1] - ends[0]};
}

std::int32_t Corpus::length(std::size_t column, std::int64_t row) const {
  expect(columns_[column].type != ColumnType::number, "Corpus::length: a column of numbers");
  return static_cast<std::int32_t>(cell(column, row).elements);
}

void Corpus::append_tokens(std::size_t column, std::int64_t row,
                           std::vector<std::int32_t>& out) const {
  const ColumnType type = columns_[column].type;
  expect(type == ColumnType::tokens16 || type == ColumnType::tokens32,
         "Corpus::append_tokens: the column holds no ids");
  const Cell c = cell(column, row);
  const std::size_t before = out.size();
  out.resize(before + c.elements);
  if (type == ColumnType::tokens32) {
    if (c.elements > 0)
      std::memcpy(out.data() + before, c.begin, c.elements * sizeof(std::int32_t));
    return;
  }
  for (std::size_t i = 0; i < c.elements; ++i) {
    std::uint16_t id = 0;
    std::memcpy(&id, c.begin + i * sizeof id, sizeof id);
    out[before + i] = id;
  }
}

std::string_view Corpus::text(std::size_t column, std::int64_t row) const {
  expect(columns_[column].type == ColumnType::text, "Corpus::text: the column holds no text");
  const Cell c = cell(column, row);
  return {reinterpret_cast<const char*>(c.begin), c.elements};
}

std::uint64_t Corpus::number(std::size_t column, std::int64_t row) const {
  expect(columns_[column].type == ColumnType::number,
         "Corpus::number: the column holds no numbers");
  std::uint64_t value = 0;
  std::memcpy(&value, section(column, row).begin + row % kRowsPerBlock * 8, sizeof value);
  return value;
}

void Corpus::verify() const {
  const std::string hash =
      hash_bytes(raw(file_.bytes().data(), static_cast<std::size_t>(content_bytes_)));
  if (hash != content_hash_)
    damaged(fmt::format("its checksum is {}, not {} as written", hash, content_hash_));
}

}  // namespace octavo
