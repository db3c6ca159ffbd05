#include "data/text_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "core/error.h"
#include "core/file.h"
#include "data/corpus.h"
#include "data/subword_training.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;
using testkit::message_of;
using testkit::TempFolder;

const std::filesystem::path kSamples =
    std::filesystem::path(OCTAVO_SOURCE_DIR) / "tests/samples/libreoffice-help";

const SubwordPair& models() {
  static const SubwordPair pair = [] {
    const auto train = [](const char* file) {
      return std::make_shared<const Subwords>(
          train_subwords(
              {.kind = SubwordKind::bpe, .vocabulary_size = 700, .character_coverage = 1},
              read_lines(kSamples / file)),
          file);
    };
    return SubwordPair{.source = train("test.en"), .target = train("test.de")};
  }();
  return pair;
}

constexpr EncodeSettings kSettings{
    .max_length = 256, .max_ratio = 3.0, .keep_text = true, .threads = 1};

void write_gzip(const std::filesystem::path& path, const std::string& text) {
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
}

TEST(EncodePairs, KeepsIdsTextAndLineNumbers) {
  const TempFolder folder;
  const TextPair files{"data.train[0]", folder.write("s", "Open the file.\r\n\n A  b\t\n"),
                       folder.write("t",
                                    "Datei\xC2\xA0\xC3\xB6"
                                    "ffnen.\nleer\nA B")};
  const PairCounts counts = encode_pairs(files, models(), kSettings, folder / "x.corpus");
  const Corpus corpus(folder / "x.corpus");
  ASSERT_EQ(corpus.rows(), 2);
  const auto row = [&](std::int64_t r) {
    std::vector<std::int32_t> s, t;
    corpus.append_tokens(corpus.column("source"), r, s);
    corpus.append_tokens(corpus.column("target"), r, t);
    EXPECT_EQ(models().source->decode(s), corpus.text(corpus.column("source_text"), r));
    EXPECT_EQ(models().target->decode(t), corpus.text(corpus.column("target_text"), r));
    return corpus.number(corpus.column("line"), r);
  };
  EXPECT_EQ(row(0), 1u);
  EXPECT_EQ(row(1), 3u);
  EXPECT_EQ(corpus.text(corpus.column("source_text"), 0), "Open the file.");
  EXPECT_EQ(corpus.text(corpus.column("source_text"), 1), " A  b\t");
  EXPECT_EQ(counts.source_tokens, corpus.elements(corpus.column("source")));
  EXPECT_EQ(counts.target_tokens, corpus.elements(corpus.column("target")));
  EXPECT_EQ(corpus.metadata().at("subwords.target"), models().target->hash());
}

TEST(EncodePairs, CountsWhatItDropsByReason) {
  const TempFolder folder;
  std::string s, t;
  const auto pair = [&](const std::string& a, const std::string& b) {
    s += a + "\n";
    t += b + "\n";
  };
  std::string words;
  for (int i = 0; i < 300; ++i) words += " Wort";
  pair("a b c", "a b c");                   // 1, kept
  pair("", "a");                            // 2, empty
  pair("a", " \t ");                        // 3, empty
  pair("a\xFF", "b");                       // 4, invalid
  pair("a", "\xED\xA0\x80");                // 5, invalid: a surrogate
  pair(words, words);                       // 6, too long
  pair(std::string(100000, 'x'), "x");      // 7, too long
  pair("a", "a b c d e f g h i j k l m");   // 8, out of ratio
  pair("\xE2\x80\xA8", "\xC2\x85");         // 9, kept: U+2028 and U+0085 are characters
  pair(std::string("NUL \0 x", 7), "NUL");  // 10, kept
  pair("", "\xFF");                         // 11, invalid comes before empty
  const TextPair files{"data.train[0]", folder.write("s", s), folder.write("t", t)};
  const PairCounts counts = encode_pairs(files, models(), kSettings, folder / "x.corpus");
  EXPECT_EQ(counts.lines, 11);
  EXPECT_EQ(counts.kept, 3);
  EXPECT_EQ(counts.description(),
            "11 pairs, 3 kept; dropped: 3 invalid UTF-8 (first: line 4), 2 empty (first: line 2), "
            "2 too long (first: line 6), 1 out of ratio (first: line 8)");
  EncodeSettings all = kSettings;
  all.max_ratio = std::nullopt;
  EXPECT_EQ(encode_pairs(files, models(), all, folder / "y.corpus").kept, 4);
}

TEST(EncodePairs, LengthLimitCountsEos) {
  const TempFolder folder;
  std::vector<std::int32_t> ids;
  SubwordEncoder(*models().source).encode("Open the file.", ids);
  const TextPair files{"data.train[0]", folder.write("s", "Open the file.\n"),
                       folder.write("t", "D.\n")};
  EncodeSettings settings = kSettings;
  settings.max_ratio = std::nullopt;
  settings.max_length = static_cast<std::int64_t>(ids.size()) + 1;
  EXPECT_EQ(encode_pairs(files, models(), settings, folder / "x.corpus").kept, 1);
  --settings.max_length;
  EXPECT_THAT(
      message_of<UserError>([&] { encode_pairs(files, models(), settings, folder / "y.corpus"); }),
      HasSubstr("can be used: 1 pairs, 0 kept; dropped: 1 too long (first: line 1)"));
  EXPECT_FALSE(std::filesystem::exists(folder / "y.corpus"));
}

TEST(EncodePairs, AnyNumberOfThreadsGivesTheSameFile) {
  const TempFolder folder;
  // More lines than one block, with drops among them.
  std::string s, t;
  const auto en = read_lines(kSamples / "train.en"), de = read_lines(kSamples / "train.de");
  for (std::size_t i = 0; i < 70001; ++i) {
    s += i % 97 == 0 ? "\n" : en[i % en.size()].substr(0, 40) + "\n";
    t += de[i % de.size()].substr(0, 40) + "\n";
  }
  // Cutting after 40 bytes leaves halves of characters: invalid UTF-8 is among the drops.
  const TextPair files{"data.train[0]", folder.write("s", s), folder.write("t", t)};
  EncodeSettings settings = kSettings;
  const PairCounts one = encode_pairs(files, models(), settings, folder / "1.corpus");
  EXPECT_GT(one.dropped[static_cast<std::size_t>(DropReason::invalid_utf8)].pairs, 100);
  for (const int threads : {2, 3, 7}) {
    settings.threads = threads;
    const PairCounts counts = encode_pairs(files, models(), settings, folder / "n.corpus");
    EXPECT_EQ(counts.description(), one.description());
    EXPECT_EQ(read_file(folder / "n.corpus"), read_file(folder / "1.corpus"));
  }
}

TEST(EncodePairs, ReadsGzip) {
  const TempFolder folder;
  write_gzip(folder / "s.gz", "a b\nc d\n");
  const TextPair plain{"data.dev", folder.write("s", "a b\nc d\n"), folder.write("t", "x\ny\n")};
  TextPair packed = plain;
  packed.source = folder / "s.gz";
  encode_pairs(plain, models(), kSettings, folder / "a.corpus");
  encode_pairs(packed, models(), kSettings, folder / "b.corpus");
  EXPECT_EQ(Corpus(folder / "a.corpus").content_hash(), Corpus(folder / "b.corpus").content_hash());
}

TEST(EncodePairs, RefusesUnequalFilesNamingBothCounts) {
  const TempFolder folder;
  const auto message = [&](const std::string& s, const std::string& t) {
    const TextPair files{"data.train[2]", folder.write("s", s), folder.write("t", t)};
    return message_of<UserError>(
        [&] { encode_pairs(files, models(), kSettings, folder / "x.corpus"); });
  };
  EXPECT_THAT(message("a\nb\nc\nd\n", "a\nb\n"),
              ::testing::AllOf(HasSubstr("data.train[2]: "), HasSubstr("/s has 4 lines but "),
                               HasSubstr("/t has 2. Line k")));
  EXPECT_THAT(message("a\n", "a\nb\nc\n"), HasSubstr("/s has 1 lines"));
  EXPECT_THAT(message("a\n", "a\nb\nc\n"), HasSubstr("/t has 3. Line k"));
  EXPECT_THAT(message("", "a\n"), HasSubstr("/s has 0 lines"));
  EXPECT_THAT(message("", ""), HasSubstr("0 pairs, 0 kept"));
  EXPECT_FALSE(std::filesystem::exists(folder / "x.corpus"));
}

TEST(EncodePairs, AFullDiskLeavesNoCorpus) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "Open the file and close it again.\n";
  const TextPair files{"data.train[0]", folder.write("s", text), folder.write("t", text)};
  models();
  EXPECT_THAT(testkit::with_file_size_limit(200000,
                                            [&]() -> std::string {
                                              return message_of<UserError>([&] {
                                                encode_pairs(files, models(), kSettings,
                                                             folder / "x.corpus");
                                              });
                                            }),
              HasSubstr("x.corpus"));
  EXPECT_FALSE(std::filesystem::exists(folder / "x.corpus"));
}

}  // namespace
}  // namespace octavo
