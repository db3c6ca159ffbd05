#include "trainer/parameter_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <set>
#include <string>

#include "core/error.h"

namespace octavo {
namespace {

std::int64_t stored_size(const Parameter& p) {
  return p.shape[0] * p.columns();
}

void check_flat(const ParameterTable& table, const Tensor& flat) {
  expect_shape(flat, {table.flat_size()}, "the flat buffer");
  expect(flat.dtype() == DType::f32 || flat.dtype() == DType::f64,
         "parameter files: the flat buffer must be f32 or f64");
}

/// Copies elements that may lie at any address, from one type to another.
template <typename From, typename To>
void convert(std::span<const std::byte> from, To* to) {
  for (std::size_t i = 0; i < from.size() / sizeof(From); ++i) {
    From value;
    std::memcpy(&value, from.data() + i * sizeof(From), sizeof(From));
    to[i] = static_cast<To>(value);
  }
}

template <typename To>
void copy_in(DType type, std::span<const std::byte> from, To* to) {
  if (type == kDTypeOf<To>) {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
  } else if (type == DType::f32) {
    convert<float>(from, to);
  } else if (type == DType::f64) {
    convert<double>(from, to);
  } else {
    convert<bfloat16>(from, to);
  }
}

/// "a, b, c and 3 more"
std::string first_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 10;
  const std::size_t shown = std::min(names.size(), kShown);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

/// What keeps the file from filling the table; empty if nothing does.
std::string differences(const ParameterTable& table, const SafetensorsFile& file,
                        std::string_view prefix) {
  std::vector<std::string> missing, unfit, unknown;
  std::set<std::string, std::less<>> known;
  for (const Parameter& p : table.parameters()) {
    const std::string name = std::string(prefix) + p.name;
    known.insert(name);
    const SafetensorsFile::Entry* entry = file.find(name);
    if (entry == nullptr)
      missing.push_back(name);
    else if (entry->shape != p.shape)
      unfit.push_back(fmt::format("{} is {} in the file and {} in the model", name,
                                  shape_text(entry->shape), shape_text(p.shape)));
    else if (entry->type != DType::f32 && entry->type != DType::f64 && entry->type != DType::bf16)
      unfit.push_back(fmt::format("{} holds {}, not real numbers", name, name_of(entry->type)));
  }
  for (const SafetensorsFile::Entry& entry : file.entries())
    if (entry.name.starts_with(prefix) && !known.contains(entry.name))
      unknown.push_back(entry.name);
  std::string text;
  if (!missing.empty()) text += fmt::format(" Missing in the file: {}.", first_of(missing));
  if (!unknown.empty()) text += fmt::format(" Unknown to the model: {}.", first_of(unknown));
  if (!unfit.empty()) text += fmt::format(" Different: {}.", first_of(unfit));
  return text;
}

}  // namespace

std::vector<NamedTensor> stored_tensors(const ParameterTable& table, const Tensor& flat,
                                        std::string_view prefix) {
  check_flat(table, flat);
  const auto width = static_cast<std::int64_t>(bytes_of(flat.dtype()));
  const auto* begin = static_cast<const std::byte*>(flat.raw());
  std::vector<NamedTensor> tensors;
  for (const Parameter& p : table.parameters())
    tensors.push_back(
        {.name = std::string(prefix) + p.name,
         .type = flat.dtype(),
         .shape = p.shape,
         .bytes = {begin + p.offset * width, static_cast<std::size_t>(stored_size(p) * width)}});
  return tensors;
}

namespace {

void clear(const Tensor& flat, std::int64_t begin, std::int64_t end) {
  const Tensor gap = flat.rows(begin, end - begin);
  std::memset(gap.raw(), 0, static_cast<std::size_t>(gap.bytes()));
}

/// The parameters' indexes in the order of the flat buffers.
std::vector<std::size_t> by_offset(const std::vector<Parameter>& parameters) {
  std::vector<std::size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return parameters[i].offset; });
  return order;
}

}  // namespace

void load_parameters(const ParameterTable& table, const SafetensorsFile& file, const Tensor& flat,
                     std::string_view prefix, const std::set<int>& left_out) {
  check_flat(table, flat);
  if (const std::string found = differences(table, file, prefix); !found.empty())
    throw UserError(
        fmt::format("{} does not fit this model.{} The checkpoint was made with other settings of "
                    "the model or another vocabulary: use those, or another checkpoint.",
                    file.path().string(), found));
  std::int64_t done = 0;
  for (const std::size_t i : by_offset(table.parameters())) {
    const Parameter& p = table.parameters()[i];
    clear(flat, done, p.offset);
    done = p.offset + p.padded_size();
    if (left_out.contains(static_cast<int>(i))) continue;
    const SafetensorsFile::Entry& entry = *file.find(std::string(prefix) + p.name);
    if (flat.dtype() == DType::f64)
      copy_in(entry.type, file.bytes(entry), flat.data<double>() + p.offset);
    else
      copy_in(entry.type, file.bytes(entry), flat.data<float>() + p.offset);
    clear(flat, p.offset + stored_size(p), done);
  }
  clear(flat, done, table.flat_size());
}

Tensor matrix_in_place(const ParameterTable& table, const SafetensorsFile& file,
                       ParameterSpan span) {
  const std::byte *first = nullptr, *end = nullptr;
  for (int i = span.first; i < span.first + span.count; ++i) {
    const Parameter& p = table.parameters()[static_cast<std::size_t>(i)];
    const SafetensorsFile::Entry* entry = file.find(p.name);
    if (entry == nullptr || entry->type != DType::f32 || entry->shape != p.shape ||
        p.padded_rows != p.shape[0])
      return {};
    const std::span<const std::byte> bytes = file.bytes(*entry);
    if (end != nullptr && bytes.data() != end) return {};
    if (first == nullptr) first = bytes.data();
    end = bytes.data() + bytes.size();
  }
  if (first == nullptr || reinterpret_cast<std::uintptr_t>(first) % alignof(float) != 0) return {};
  const Parameter& p = table.parameters()[static_cast<std::size_t>(span.first)];
  return {const_cast<std::byte*>(first), {p.shape[0] * span.count, p.columns()}, DType::f32};
}

}  // namespace octavo
