#include "core/lines.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <random>

#include "core/error.h"
#include "core/file.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testkit::message_of;
using testkit::TempFolder;

using Lines = std::vector<std::string>;

Lines lines_of(std::string_view contents) {
  const TempFolder folder;
  return read_lines(folder.write("text", contents));
}

std::string gzip(std::string_view text) {
  z_stream z{};
  expect(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK, "gzip");
  std::string out(deflateBound(&z, text.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  expect(deflate(&z, Z_FINISH) == Z_STREAM_END, "gzip");
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

TEST(Lines, EndAtNewlinesOnly) {
  EXPECT_THAT(lines_of(""), IsEmpty());
  EXPECT_THAT(lines_of("\n"), ElementsAre(""));
  EXPECT_THAT(lines_of("a"), ElementsAre("a"));
  EXPECT_THAT(lines_of("a\n"), ElementsAre("a"));
  EXPECT_THAT(lines_of("a\n\nb"), ElementsAre("a", "", "b"));
  // NEL, U+2028, U+2029, VT, FF and a lone CR are ordinary.
  const std::string odd = "a\xC2\x85 b\xE2\x80\xA8 c\xE2\x80\xA9 d\v e\f f\r g";
  EXPECT_THAT(lines_of(odd + "\nnext\n"), ElementsAre(odd, "next"));
}

TEST(Lines, LoseOneFinalCarriageReturn) {
  EXPECT_THAT(lines_of("a\r\nb\r\r\n\r\nc\r"), ElementsAre("a", "b\r", "", "c"));
}

TEST(Lines, KeepNulAndBadUtf8) {
  const std::string odd("a\0b\xff", 4);
  EXPECT_THAT(lines_of(odd + "\n" + odd), ElementsAre(odd, odd));
}

TEST(Lines, MayBeVeryLong) {
  const std::string a(3'000'001, 'a'), b(100'000, 'b');
  const std::string text = a + "\n" + b + "\r\n\n" + a;
  EXPECT_EQ((Lines{a, b, "", a}), lines_of(text));
  EXPECT_EQ((Lines{a, b, "", a}), lines_of(gzip(text)));
}

TEST(Lines, AreCounted) {
  const TempFolder folder;
  LineReader reader(folder.write("text", "a\nb"));
  EXPECT_EQ(0, reader.line_number());
  reader.next();
  EXPECT_EQ(1, reader.line_number());
  reader.next();
  EXPECT_EQ(2, reader.line_number());
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(2, reader.line_number());
}

// Cuts fall at every place relative to the reader's buffer of 2^18 bytes.
TEST(Lines, SurviveEveryCutOfTheBuffer) {
  for (const std::size_t pad : {262'140, 262'141, 262'142, 262'143, 262'144, 262'145}) {
    const std::string a(pad, 'a');
    EXPECT_EQ((Lines{a, "b", "", "c"}), lines_of(a + "\r\nb\n\r\nc")) << pad;
  }
}

TEST(Lines, OfGzip) {
  EXPECT_THAT(lines_of(gzip("a\r\nb\n")), ElementsAre("a", "b"));
  EXPECT_THAT(lines_of(gzip("")), IsEmpty());
  // Members follow each other, and a line may go on in the next.
  EXPECT_THAT(lines_of(gzip("a\nb") + gzip("") + gzip("c\nd")), ElementsAre("a", "bc", "d"));
  std::string text;
  Lines expected;
  for (int i = 0; i < 200'000; ++i) {
    expected.push_back(std::to_string(i * 7919));
    text += expected.back() + "\n";
  }
  EXPECT_EQ(expected, lines_of(gzip(text)));
}

TEST(Lines, ThatOnlyLookLikeGzip) {
  EXPECT_THAT(lines_of("\x1f"), ElementsAre("\x1f"));
  EXPECT_THAT(lines_of("\x1f\n"), ElementsAre("\x1f"));
}

TEST(Lines, OfDamagedGzipAreRefused) {
  const TempFolder folder;
  std::string text;
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) text += std::to_string(random()) + "\n";
  const std::string good = gzip(text);
  // Cut anywhere, header and trailer included.
  for (const std::size_t size : {std::size_t{2}, std::size_t{9}, std::size_t{10}, good.size() / 2,
                                 good.size() - 8, good.size() - 1}) {
    const auto path = folder.write("cut.gz", good.substr(0, size));
    EXPECT_THAT(message_of<UserError>([&] { read_lines(path); }),
                testing::AllOf(HasSubstr("cut.gz"), HasSubstr("ends too early")))
        << size;
  }
  std::string flipped = good;
  flipped[flipped.size() - 6] ^= 1;  // the checksum
  EXPECT_THAT(message_of<UserError>([&] { read_lines(folder.write("bad.gz", flipped)); }),
              testing::AllOf(HasSubstr("bad.gz"), HasSubstr("damaged")));
  EXPECT_THAT(message_of<UserError>([&] { read_lines(folder.write("tail.gz", good + "tail")); }),
              HasSubstr("damaged"));
}

TEST(Lines, OfStandardInputComeAtOnce) {
  EXPECT_EQ("first, , last, 3", testkit::in_child([] {
              std::array<int, 2> ends{};
              expect(::pipe(ends.data()) == 0, "pipe failed");
              ::dup2(ends[0], STDIN_FILENO);
              const auto type = [&](std::string_view text) {
                expect(
                    ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()),
                    "write failed");
              };
              LineReader reader("-");
              type("first\n");  // the pipe stays open: next() must not wait for more
              std::string said(reader.next().value());
              type("\n");
              said.append(", ").append(reader.next().value());
              type("la");
              type("st");
              ::close(ends[1]);
              said.append(", ").append(reader.next().value());
              return said + ", " + std::to_string(reader.line_number() + reader.next().has_value());
            }));
}

TEST(Lines, OfWhatIsNoFile) {
  const TempFolder folder;
  EXPECT_THAT(message_of<UserError>([&] { read_lines(folder / "none"); }),
              testing::AllOf(HasSubstr("none"), HasSubstr("No such file or directory")));
  EXPECT_THAT(message_of<UserError>([&] { read_lines(folder.path()); }),
              testing::AllOf(HasSubstr(folder.path().string()), HasSubstr("Is a directory")));
}

/// Decodes one code point after another and checks what it decoded: slow and plain.
std::size_t plain_first_invalid(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto byte = [&](std::size_t i) -> std::uint32_t {
      return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
    };
    const std::uint32_t lead = byte(0);
    std::size_t extra = 0;
    std::uint32_t value = lead, smallest = 0;
    if (lead >= 0xF0 && lead < 0xF8)
      extra = 3, value = lead & 7, smallest = 0x10000;
    else if (lead >= 0xE0 && lead < 0xF0)
      extra = 2, value = lead & 15, smallest = 0x800;
    else if (lead >= 0xC0 && lead < 0xE0)
      extra = 1, value = lead & 31, smallest = 0x80;
    else if (lead >= 0x80)
      return at;
    for (std::size_t i = 1; i <= extra; ++i) {
      if (byte(i) < 0x80 || byte(i) > 0xBF) return at;
      value = value << 6 | (byte(i) & 63);
    }
    if (value < smallest || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return at;
    at += 1 + extra;
  }
  return text.size();
}

TEST(Utf8, KnownCases) {
  EXPECT_TRUE(is_valid_utf8(""));
  EXPECT_TRUE(is_valid_utf8("plain ASCII, longer than eight bytes"));
  EXPECT_TRUE(is_valid_utf8("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80 \xF4\x8F\xBF\xBF"));
  EXPECT_TRUE(is_valid_utf8(std::string_view("\0", 1)));
  EXPECT_FALSE(is_valid_utf8("\xC0\x80"));               // overlong NUL
  EXPECT_FALSE(is_valid_utf8("\xED\xA0\x80"));           // a surrogate
  EXPECT_FALSE(is_valid_utf8("\xF4\x90\x80\x80"));       // beyond U+10FFFF
  EXPECT_FALSE(is_valid_utf8("\xE2\x82"));               // cut short
  EXPECT_EQ(10u, first_invalid_utf8("0123456789\xFF"));  // behind the fast path
  EXPECT_EQ(3u, first_invalid_utf8("\xE2\x82\xAC\xE2\x82 "));
}

TEST(LineReader, KnowsWhetherItWouldHaveToWait) {
  const TempFolder folder;
  const std::string path = folder / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int writer = ::open(path.c_str(), O_RDWR);
  ASSERT_GE(writer, 0);
  LineReader reader(path);
  EXPECT_FALSE(reader.ready(0));
  ASSERT_EQ(::write(writer, "one\ntwo\nthr", 11), 11);
  EXPECT_TRUE(reader.ready(0));
  EXPECT_EQ(reader.next(), "one");
  EXPECT_TRUE(reader.ready(0));
  EXPECT_EQ(reader.next(), "two");
  EXPECT_FALSE(reader.ready(0));  // half a line
  ASSERT_EQ(::write(writer, "ee\n", 3), 3);
  EXPECT_TRUE(reader.ready(0));
  EXPECT_EQ(reader.next(), "three");
  EXPECT_FALSE(reader.ready(1));
  ::close(writer);
  EXPECT_TRUE(reader.ready(0));  // the end
  EXPECT_EQ(reader.next(), std::nullopt);
}

TEST(LineReader, AFileNeverWaits) {
  const TempFolder folder;
  for (const std::string& contents : {std::string(), std::string("a\nb"), gzip("a\nb\n")}) {
    LineReader reader(folder.write("text", contents));
    do {
      EXPECT_TRUE(reader.ready(0));
    } while (reader.next());
  }
}

TEST(Utf8, ReplacesEachIllFormedByte) {
  EXPECT_EQ(replace_invalid_utf8(""), "");
  EXPECT_EQ(replace_invalid_utf8("gr\u00FC\u00DFe"), "gr\u00FC\u00DFe");
  EXPECT_EQ(replace_invalid_utf8("\xFF"), "\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("a\xE2\x82z\xC3"), "a\uFFFD\uFFFDz\uFFFD");
  EXPECT_EQ(replace_invalid_utf8(std::string(3, '\x80')), "\uFFFD\uFFFD\uFFFD");
}

TEST(Utf8, AgreesWithThePlainReference) {
  std::mt19937 random(7);
  // Bytes at the edges of the table's ranges, so that random strings are often nearly right.
  const std::string edges =
      "\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xEC\xED\xEE\xEF\xF0\xF1\xF3\xF4\xF5";
  int valid = 0;
  for (int round = 0; round < 300'000; ++round) {
    std::string text(random() % 4 == 0 ? random() % 24 : 0, 'x');
    for (std::size_t n = random() % 6; n > 0; --n)
      text +=
          random() % 4 == 0 ? static_cast<char>(random() % 256) : edges[random() % edges.size()];
    ASSERT_EQ(plain_first_invalid(text), first_invalid_utf8(text)) << testing::PrintToString(text);
    valid += is_valid_utf8(text);
  }
  EXPECT_GT(valid, 50'000);
  EXPECT_LT(valid, 250'000);
}

TEST(Utf8, KnowsEveryCodePoint) {
  for (std::uint32_t c = 0; c <= 0x10FFFF; ++c) {
    std::string text;
    if (c < 0x80) {
      text = {static_cast<char>(c)};
    } else if (c < 0x800) {
      text = {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    } else if (c < 0x10000) {
      text = {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
              static_cast<char>(0x80 | (c & 63))};
    } else {
      text = {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
              static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
    }
    ASSERT_EQ(c < 0xD800 || c > 0xDFFF, is_valid_utf8(text)) << c;
  }
}

}  // namespace
}  // namespace octavo
