#include "data/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "core/error.h"
#include "core/file.h"
#include "core/philox.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;
using testkit::message_of;
using testkit::TempFolder;

const std::vector<Column> kColumns{{"source", ColumnType::tokens16},
                                   {"target", ColumnType::tokens32},
                                   {"source_text", ColumnType::text},
                                   {"line", ColumnType::number}};

struct Row {
  std::vector<std::int32_t> source, target;
  std::string text;
  std::uint64_t line;
};

/// Rows of lengths 0 and up, ids up to the largest the type holds, text with NUL and newlines.
std::vector<Row> some_rows(std::size_t n) {
  RandomStream random(n);
  std::vector<Row> rows(n);
  for (std::size_t i = 0; i < n; ++i) {
    rows[i].source.resize(random.below(6));
    for (auto& id : rows[i].source) id = static_cast<std::int32_t>(random.below(65536));
    rows[i].target.resize(random.below(6));
    for (auto& id : rows[i].target) id = static_cast<std::int32_t>(random.below(1u << 31));
    rows[i].text.resize(random.below(9));
    for (char& c : rows[i].text) c = static_cast<char>(random.below(256));
    rows[i].line = (random.below(1u << 31) << 32) + i;
  }
  return rows;
}

std::filesystem::path write(const std::filesystem::path& path, const std::vector<Row>& rows) {
  CorpusWriter writer(path, kColumns);
  for (const Row& row : rows) {
    writer.set_number(3, row.line);
    writer.set_tokens(0, row.source);
    writer.set_tokens(1, row.target);
    writer.set_text(2, row.text);
    writer.end_row();
  }
  writer.commit({{"subwords.source", "abc"}, {"name", "\xC3\xA4\n\""}});
  return path;
}

/// A file without the flushing of TempFolder::write, for tests that make thousands.
std::filesystem::path write_quickly(const std::filesystem::path& path, std::string_view contents) {
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

TEST(Corpus, GivesBackEveryRow) {
  const TempFolder folder;
  for (const std::size_t n : {0, 1, 2, 65535, 65536, 65537, 140001}) {
    const std::vector<Row> rows = some_rows(n);
    const Corpus corpus(write(folder / "a.corpus", rows));
    ASSERT_EQ(corpus.rows(), static_cast<std::int64_t>(n));
    const std::size_t source = corpus.column("source"), target = corpus.column("target");
    std::int64_t tokens = 0;
    std::vector<std::int32_t> ids;
    for (std::size_t i = 0; i < n; ++i) {
      const auto r = static_cast<std::int64_t>(i);
      ids.assign(1, -7);  // append_tokens appends
      corpus.append_tokens(source, r, ids);
      corpus.append_tokens(target, r, ids);
      std::vector<std::int32_t> expected{-7};
      expected.insert(expected.end(), rows[i].source.begin(), rows[i].source.end());
      expected.insert(expected.end(), rows[i].target.begin(), rows[i].target.end());
      ASSERT_EQ(ids, expected) << "row " << i << " of " << n;
      ASSERT_EQ(corpus.length(source, r), static_cast<std::int32_t>(rows[i].source.size()));
      ASSERT_EQ(corpus.text(corpus.column("source_text"), r), rows[i].text);
      ASSERT_EQ(corpus.number(corpus.column("line"), r), rows[i].line);
      tokens += static_cast<std::int64_t>(rows[i].source.size());
    }
    EXPECT_EQ(corpus.elements(source), tokens);
    corpus.verify();
  }
}

TEST(Corpus, KeepsMetadataAndNames) {
  const TempFolder folder;
  const Corpus corpus(write(folder / "a.corpus", some_rows(3)));
  EXPECT_EQ(corpus.metadata().at("name"), "\xC3\xA4\n\"");
  EXPECT_EQ(corpus.content_hash().size(), 16u);
  EXPECT_TRUE(corpus.has("line"));
  EXPECT_FALSE(corpus.has("lines"));
  EXPECT_THAT(message_of<UserError>([&] { corpus.column("lines"); }),
              HasSubstr("no column 'lines'; it has source, target, source_text, line"));
}

TEST(Corpus, HashTellsContentApartAndIgnoresMetadata) {
  const TempFolder folder;
  std::vector<Row> rows = some_rows(100);
  const std::string hash = Corpus(write(folder / "a.corpus", rows)).content_hash();
  EXPECT_EQ(Corpus(write(folder / "b.corpus", rows)).content_hash(), hash);
  rows[57].line ^= 1;
  EXPECT_NE(Corpus(write(folder / "b.corpus", rows)).content_hash(), hash);
}

TEST(Corpus, NothingAppearsWithoutCommit) {
  const TempFolder folder;
  {
    CorpusWriter writer(folder / "a.corpus", {{"line", ColumnType::number}});
    writer.set_number(0, 1);
    writer.end_row();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Corpus, EveryTruncationIsAnError) {
  const TempFolder folder;
  const std::string whole = read_file(write(folder / "a.corpus", some_rows(5)));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const auto path = write_quickly(folder / "cut.corpus", std::string_view(whole).substr(0, n));
    EXPECT_THROW(Corpus corpus(path), UserError) << n << " of " << whole.size() << " bytes";
  }
}

TEST(Corpus, EveryFlippedBitIsAnErrorAndNoneACrash) {
  const TempFolder folder;
  const std::string whole = read_file(write(folder / "a.corpus", some_rows(10)));
  RandomStream random(1);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    std::string flipped = whole;
    flipped[n] = static_cast<char>(flipped[n] ^ (1 << random.below(8)));
    const auto path = write_quickly(folder / "flipped.corpus", flipped);
    EXPECT_THROW(Corpus(path).verify(), UserError) << "byte " << n;
    try {  // unverified: wrong values or an error, never an access outside
      const Corpus corpus(path);
      std::vector<std::int32_t> ids;
      for (std::int64_t r = 0; r < corpus.rows(); ++r) {
        corpus.append_tokens(0, r, ids);
        corpus.append_tokens(1, r, ids);
        EXPECT_LE(corpus.text(2, r).size(), whole.size());
      }
    } catch (const UserError&) {
    }
  }
}

TEST(Corpus, SaysWhatIsWrong) {
  const TempFolder folder;
  const auto message = [&](std::string_view contents) {
    const auto path = folder.write("x.corpus", contents);
    return message_of<UserError>([&] { Corpus(path).verify(); });
  };
  std::string whole = read_file(write(folder / "a.corpus", some_rows(5)));
  EXPECT_THAT(message(""), HasSubstr("not a corpus of octavo"));
  EXPECT_THAT(message("Ein Satz.\nNoch ein Satz.\n"), HasSubstr("not a corpus of octavo"));
  EXPECT_THAT(message(whole.substr(0, whole.size() - 1)), HasSubstr("its end is missing"));
  whole[8] = 9;
  EXPECT_THAT(message(whole), HasSubstr("format 9, but this program reads format 1"));
  whole[8] = 1;
  whole[20] ^= 1;
  EXPECT_THAT(message(whole), HasSubstr("its checksum is"));
  EXPECT_THAT(message_of<UserError>([&] { Corpus corpus(folder / "none.corpus"); }),
              HasSubstr("none.corpus"));
}

TEST(Corpus, AFullDiskIsAnErrorThatLeavesNothing) {
  const TempFolder folder;
  const std::string said = testkit::with_file_size_limit(100000, [&]() -> std::string {
    return message_of<UserError>([&] { write(folder / "a.corpus", some_rows(20000)); });
  });
  EXPECT_THAT(said, HasSubstr("a.corpus"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Corpus, MisuseIsAnInternalError) {
  const TempFolder folder;
  CorpusWriter writer(folder / "a.corpus", kColumns);
  EXPECT_THROW(writer.set_text(0, "x"), InternalError);
  EXPECT_THROW(writer.set_tokens(0, std::vector<std::int32_t>{65536}), InternalError);
  writer.set_number(3, 1);
  EXPECT_THROW(writer.set_number(3, 1), InternalError);
  EXPECT_THROW(writer.end_row(), InternalError);
  EXPECT_EQ(tokens_type(65536), ColumnType::tokens16);
  EXPECT_EQ(tokens_type(65537), ColumnType::tokens32);
}

}  // namespace
}  // namespace octavo
