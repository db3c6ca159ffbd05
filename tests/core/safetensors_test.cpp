#include "core/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>

#include "core/error.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testkit::message_of;
using testkit::TempFolder;

const std::string kGolden = OCTAVO_SOURCE_DIR "/tests/golden/safetensors.safetensors";

template <typename T>
std::vector<T> values(const SafetensorsFile& file, const std::string& name) {
  const SafetensorsFile::Entry* entry = file.find(name);
  if (entry == nullptr || entry->type != kDTypeOf<T>) return {};
  const auto bytes = file.bytes(*entry);
  std::vector<T> out(bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

/// A file with this header and `data` bytes of zeros.
std::string file_text(const std::string& header, std::size_t data) {
  const std::uint64_t length = header.size();
  std::string text(reinterpret_cast<const char*>(&length), sizeof length);
  return text + header + std::string(data, '\0');
}

/// write_file() without waiting for the disk: some tests write thousands of files. (ext4 flushes a
/// file that was cut to nothing and written again, so the old one is removed.)
void write_quickly(const std::filesystem::path& path, const std::string& contents) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << contents;
}

std::string refusal(const std::string& contents) {
  const TempFolder folder;
  write_quickly(folder / "x.safetensors", contents);
  return message_of<UserError>([&] { SafetensorsFile(folder / "x.safetensors"); });
}

TEST(Safetensors, ReadsWhatPythonWrote) {
  const SafetensorsFile file(kGolden);
  constexpr float inf = std::numeric_limits<float>::infinity();
  EXPECT_THAT(values<float>(file, "f32"), ElementsAre(1.5f, -2.25f, 3e-38f, inf, -0.0f, 1e38f));
  EXPECT_TRUE(std::signbit(values<float>(file, "f32")[4]));
  EXPECT_THAT(file.find("f32")->shape, ElementsAre(2, 3));
  EXPECT_THAT(values<double>(file, "f64"), ElementsAre(0.1, -1e300));
  std::vector<float> bf16;
  for (const bfloat16 b : values<bfloat16>(file, "bf16")) bf16.push_back(static_cast<float>(b));
  EXPECT_THAT(bf16, ElementsAre(1.0f, -3.140625f, 65280.0f));
  EXPECT_THAT(values<std::int64_t>(file, "i64"), ElementsAre(INT64_MIN, INT64_MAX));
  EXPECT_THAT(file.find("i64")->shape, ElementsAre(1, 2, 1));
  EXPECT_THAT(values<std::int32_t>(file, "i32"), ElementsAre(-7, INT32_MAX));
  EXPECT_THAT(values<std::uint8_t>(file, "u8"), ElementsAre(0, 255, 128));
  EXPECT_THAT(values<float>(file, "scalar"), ElementsAre(42.0f));
  EXPECT_THAT(file.find("scalar")->shape, ElementsAre());
  EXPECT_THAT(file.find("empty")->shape, ElementsAre(0, 5));
  EXPECT_THAT(values<float>(file, "ümlaut.\"name\""), ElementsAre(7.0f));
  EXPECT_EQ(nullptr, file.find("none"));
  EXPECT_EQ(9u, file.entries().size());
  EXPECT_EQ("ä € 😀 \"quoted\" \\ \n", file.metadata().at("text"));
}

TEST(Safetensors, WritesThePythonFileAgainToTheByte) {
  const TempFolder folder;
  const SafetensorsFile golden(kGolden);
  std::vector<NamedTensor> tensors;
  for (const auto& entry : golden.entries())
    tensors.push_back({entry.name, entry.type, entry.shape, golden.bytes(entry)});
  AtomicFile file(folder / "x");
  write_safetensors(file, tensors, golden.metadata());
  file.commit();
  EXPECT_EQ(read_file(kGolden), read_file(folder / "x"));
}

TEST(Safetensors, WritesTensorsLargerThanItsPieces) {
  const TempFolder folder;
  std::vector<float> large((5 << 18) + 7);  // 5 MiB and a bit
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<float>(i);
  const auto size = static_cast<std::int64_t>(large.size());
  AtomicFile out(folder / "x");
  write_safetensors(
      out, std::vector<NamedTensor>{{"w", DType::f32, {size}, std::as_bytes(std::span(large))}},
      {});
  out.commit();
  EXPECT_EQ(large, values<float>(SafetensorsFile(folder / "x"), "w"));
}

TEST(Safetensors, HoldsNoTensorsAtAll) {
  const TempFolder folder;
  AtomicFile out(folder / "x");
  write_safetensors(out, {}, {});
  out.commit();
  EXPECT_TRUE(SafetensorsFile(folder / "x").entries().empty());
  EXPECT_TRUE(SafetensorsFile(folder.write("y", file_text("{}", 0))).entries().empty());
}

TEST(Safetensors, CallersMayNotContradictThemselves) {
  const TempFolder folder;
  const std::array<float, 2> two{};
  const auto bytes = std::as_bytes(std::span(two));
  const auto write = [&](const std::vector<NamedTensor>& tensors) {
    return message_of<InternalError>([&] {
      AtomicFile out(folder / "x");
      write_safetensors(out, tensors, {});
    });
  };
  EXPECT_THAT(write({{"w", DType::f32, {3}, bytes}}), HasSubstr("shape disagree"));
  EXPECT_THAT(write({{"w", DType::f32, {2}, bytes}, {"w", DType::f32, {2}, bytes}}),
              HasSubstr("two tensors"));
  EXPECT_THAT(write({{"__metadata__", DType::f32, {2}, bytes}}), HasSubstr("__metadata__"));
}

TEST(Safetensors, RefusesBadHeaders) {
  EXPECT_THAT(refusal(""), HasSubstr("only 0 bytes"));
  EXPECT_THAT(refusal("1234567"), HasSubstr("only 7 bytes"));
  EXPECT_THAT(refusal(std::string(8, '\xff')), HasSubstr("claims 18446744073709551615 bytes"));
  EXPECT_THAT(refusal(std::string(8, '\0')), HasSubstr("its header"));
  EXPECT_THAT(refusal(file_text("[]", 0)), HasSubstr("not an object"));
  EXPECT_THAT(refusal(file_text("{", 0)), HasSubstr("it is not JSON at line 1"));
  EXPECT_THAT(refusal(file_text(std::string(1 << 20, '['), 0)), HasSubstr("too deep"));
  EXPECT_THAT(refusal(file_text(R"({"w": 3})", 0)), HasSubstr("its header"));
  EXPECT_THAT(refusal(file_text(R"({"w": {"dtype": "F32"}})", 0)), HasSubstr("data_offsets"));
  EXPECT_THAT(refusal(file_text(R"({"__metadata__": {"a": 1}})", 0)), HasSubstr("its header"));
  EXPECT_THAT(refusal(file_text("{\"\xff\": 1}", 0)), HasSubstr("its header"));
}

std::string entry(const std::string& type, const std::string& shape, const std::string& offsets) {
  return R"({"w": {"dtype": ")" + type + R"(", "shape": )" + shape + R"(, "data_offsets": )" +
         offsets + "}}";
}

TEST(Safetensors, RefusesBadEntries) {
  EXPECT_EQ("nothing thrown", refusal(file_text(entry("F32", "[2]", "[0, 8]"), 8)));
  EXPECT_THAT(refusal(file_text(entry("F16", "[4]", "[0, 8]"), 8)), HasSubstr("type 'F16'"));
  EXPECT_THAT(refusal(file_text(entry("F32", "[3]", "[0, 8]"), 8)), HasSubstr("shape [3]"));
  EXPECT_THAT(refusal(file_text(entry("F32", "[-2]", "[0, 8]"), 8)), HasSubstr("bad shape"));
  EXPECT_THAT(refusal(file_text(entry("F32", "[2.0]", "[0, 8]"), 8)), HasSubstr("bad shape"));
  EXPECT_THAT(refusal(file_text(entry("F32", "2", "[0, 8]"), 8)), HasSubstr("its header"));
  EXPECT_THAT(refusal(file_text(entry("F32", "[4611686018427387904, 4]", "[0, 8]"), 8)),
              HasSubstr("does not fit its shape"));
  EXPECT_THAT(refusal(file_text(entry("F32", "[0, 9223372036854775807]", "[0, 0]"), 0)),
              HasSubstr("does not fit its shape"));
  EXPECT_THAT(refusal(file_text(entry("F32", "[18446744073709551615]", "[0, 8]"), 8)),
              HasSubstr("bad shape"));
  EXPECT_THAT(refusal(file_text(entry("F32", "[2]", "[0, 8, 8]"), 8)),
              HasSubstr("bad data_offsets"));
  EXPECT_THAT(refusal(file_text(entry("F32", "[2]", "[8, 0]"), 8)), HasSubstr("begins at byte 8"));
  EXPECT_THAT(refusal(file_text(entry("F32", "[2]", "[0, 8]"), 7)), HasSubstr("ends at byte 8"));
  EXPECT_THAT(refusal(file_text(entry("F32", "[2]", "[0, 8]"), 9)), HasSubstr("which has 9"));
  EXPECT_THAT(refusal(file_text(entry("F32", "[2]", "[1, 9]"), 9)), HasSubstr("begins at byte 1"));
}

TEST(Safetensors, RefusesOverlapsGapsAndRepeatedNames) {
  const auto two = [](const std::string& name, const std::string& offsets) {
    return file_text(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, ")" + name +
                         R"(": {"dtype": "F32", "shape": [2], "data_offsets": )" + offsets + "}}",
                     16);
  };
  EXPECT_EQ("nothing thrown", refusal(two("b", "[8, 16]")));
  EXPECT_THAT(refusal(two("b", "[4, 12]")), HasSubstr("'b' begins at byte 4"));
  EXPECT_THAT(refusal(two("b", "[0, 8]")), HasSubstr("begins at byte 0"));
  EXPECT_THAT(refusal(two("b", "[12, 20]")), HasSubstr("'b' begins at byte 12"));
  EXPECT_THAT(refusal(two("a", "[8, 16]")), HasSubstr("'a' twice"));
  EXPECT_THAT(refusal(file_text(R"({"w": {"dtype": "F32", "dtype": "F32"}})", 0)),
              HasSubstr("'dtype' twice"));
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const TempFolder folder;
  const std::string whole = read_file(kGolden);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_quickly(folder / "x", whole.substr(0, size));
    EXPECT_THAT(message_of<UserError>([&] { SafetensorsFile(folder / "x"); }),
                HasSubstr("can't be read as safetensors"))
        << size;
  }
}

// The header has no checksum, so a flip may give another sound file (a name, a number in a text).
// It must never do worse: what opens can be read to its last byte.
TEST(Safetensors, NoFlippedBitsDoHarm) {
  const TempFolder folder;
  const std::string whole = read_file(kGolden);
  std::int64_t refused = 0, sum = 0;
  const auto try_reading = [&](const std::string& contents) {
    write_quickly(folder / "x", contents);
    try {
      const SafetensorsFile file(folder / "x");
      for (const auto& e : file.entries())
        for (const std::byte b : file.bytes(e)) sum += static_cast<int>(b);
    } catch (const UserError&) {
      ++refused;
    }
  };
  const std::size_t header = 8 + 0x268;
  for (std::size_t bit = 0; bit < header * 8; bit += 3) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    try_reading(damaged);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = whole;
    for (int k = 0; k < 5; ++k) damaged[random() % header] = static_cast<char>(random());
    try_reading(damaged);
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(sum, 0);
}

TEST(Safetensors, AFullDiskIsAnError) {
  const TempFolder folder;
  const std::string message = testkit::with_file_size_limit(1 << 20, [&] {
    const std::vector<float> w(1 << 20);
    AtomicFile out(folder / "x");
    write_safetensors(
        out, std::vector<NamedTensor>{{"w", DType::f32, {1 << 20}, std::as_bytes(std::span(w))}},
        {});
    out.commit();
    return std::string("written");
  });
  EXPECT_THAT(message, HasSubstr("/x: File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace octavo
