#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/lines.h"
#include "data/doctor/double_encoding.h"
#include "data/doctor/examine.h"
#include "data/doctor/test_overlap.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kNul("a\0b", 3);

std::uint8_t faults(std::string_view line) {
  return check_line(line).faults;
}

TEST(LineCheck, NamesEachFault) {
  EXPECT_EQ(0, faults("An ordinary line, with “quotes”, an Ü and 漢字."));
  EXPECT_EQ(0, faults("a tab\tis no control character"));
  EXPECT_EQ(bit(LineFault::empty), faults(""));
  EXPECT_EQ(bit(LineFault::empty), faults(" \t"));
  EXPECT_EQ(bit(LineFault::invalid_utf8), faults("caf\xe9"));
  EXPECT_EQ(bit(LineFault::invalid_utf8), faults("\xed\xa0\x80"));  // a surrogate
  EXPECT_EQ(bit(LineFault::control), faults(kNul));
  EXPECT_EQ(bit(LineFault::control), faults("a\x1b[1m"));
  EXPECT_EQ(bit(LineFault::control), faults("\xef\xbb\xbfwith a byte order mark"));
  EXPECT_EQ(bit(LineFault::separator), faults("a\u2028b"));
  EXPECT_EQ(bit(LineFault::separator), faults("a\u0085b"));
  EXPECT_EQ(bit(LineFault::separator), faults("a\rb"));
  EXPECT_EQ(bit(LineFault::double_encoded), faults("fÃ¼r"));
  EXPECT_EQ(bit(LineFault::normal_form), faults("u\u0308ber"));
  EXPECT_EQ(bit(LineFault::normal_form), faults("5 k\u212A"));  // KELVIN SIGN
  EXPECT_EQ(bit(LineFault::control) | bit(LineFault::normal_form), faults("u\u0308\x7f"));
}

TEST(LineCheck, CountsCharactersAndTellsTheScript) {
  EXPECT_EQ(5, check_line("Grüße").characters);
  const std::uint8_t latin = check_line("Grüße").script;
  EXPECT_EQ(latin, check_line("abc").script);
  EXPECT_EQ(latin, check_line("Grüße, Мир").script);
  EXPECT_NE(latin, check_line("Привет, Max").script);
  EXPECT_EQ(check_line("漢字漢字").script, check_line("ひらがな").script);
  EXPECT_EQ(0, check_line("1 + 1 = 2").script);
  EXPECT_EQ(0, check_line("ab").script);      // too short
  EXPECT_EQ(0, check_line("abcабв").script);  // no majority
}

TEST(LineCheck, Mends) {
  EXPECT_EQ("ab", mended(kNul));
  EXPECT_EQ("a b c", mended("a\u2028b\rc"));
  EXPECT_EQ("über Grüße", mended("u\u0308ber GrÃ¼ÃŸe"));
  EXPECT_EQ("ä", mended("Ã\x01¤")) << "what a control character hid";
  EXPECT_EQ("caf\xe9", mended("caf\xe9"));
  EXPECT_EQ("untouched “text”", mended("untouched “text”"));
}

// Windows-1252 as a careless program writes it: each byte of UTF-8 as a character.
std::string encoded_again(const std::string& text) {
  static const std::vector<std::string> high = {
      "€", "\u0081", "‚",      "ƒ", "„",      "…",      "†", "‡",      "ˆ", "‰", "Š",
      "‹", "Œ",      "\u008d", "Ž", "\u008f", "\u0090", "‘", "’",      "“", "”", "•",
      "–", "—",      "˜",      "™", "š",      "›",      "œ", "\u009d", "ž", "Ÿ"};
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      out += c;
    } else if (byte < 0xA0) {
      out += high[byte - 0x80];
    } else {
      out += {static_cast<char>(byte < 0xC0 ? 0xC2 : 0xC3),
              static_cast<char>(byte < 0xC0 ? byte : byte - 0x40)};
    }
  }
  return out;
}

TEST(DoubleEncoding, IsFoundAndUndone) {
  for (const std::string text :
       {"für", "Straße", "“don’t” – café…", "naïve 5 €", "Привет, мир", "漢字", "Ωμέγα", "à"}) {
    const std::string wrong = encoded_again(text);
    EXPECT_TRUE(has_double_encoding(wrong)) << wrong;
    EXPECT_EQ(text, undo_double_encoding(wrong));
    EXPECT_EQ(text, undo_double_encoding(encoded_again(wrong))) << "twice";
    EXPECT_FALSE(has_double_encoding(text)) << text;
    EXPECT_EQ(text, undo_double_encoding(text));
  }
}

TEST(DoubleEncoding, LeavesLikelyTextAlone) {
  for (const std::string_view text :
       {"das „MENÜ“", "IRMÃ” e", "« café »…", "le café»…", "Å“", "10 °C ± 2", "ÄÖÜ", "„Ä“, „Ö“"})
    EXPECT_FALSE(has_double_encoding(text)) << text;
}

TEST(TestLines, FindsExactAndNearCopies) {
  TestLines tests;
  tests.add("The quick brown fox jumps over the lazy dog near the old river bank.");
  tests.add("Menu");
  tests.add("---");
  TestLines::Scratch scratch;
  const auto find = [&](std::string_view line) { return tests.find(line, scratch); };
  EXPECT_EQ(Overlap::exact,
            find("The quick brown fox jumps over the lazy dog near the old river bank."));
  EXPECT_EQ(Overlap::near,
            find("THE QUICK brown fox - jumps over the lazy dog near the old river bank"));
  EXPECT_EQ(Overlap::near,  // one word more: 12 of 13 triples on the other side, 11 in common
            find("Indeed the quick brown fox jumps over the lazy dog near the old river bank."));
  EXPECT_EQ(Overlap::none,  // a word changed in the middle: 9 of 12 triples
            find("The quick brown fox jumps over the tired dog near the old river bank."));
  EXPECT_EQ(Overlap::none, find("A quite different line with words such as the lazy dog."));
  EXPECT_EQ(Overlap::exact, find("Menu"));
  EXPECT_EQ(Overlap::near, find("menu:"));
  EXPECT_EQ(Overlap::none, find("Menus"));
  EXPECT_EQ(Overlap::none, find("---"));
  EXPECT_EQ(Overlap::none, find("..."));
}

// Dice's coefficient over sets of word triples, from its definition.
double dice(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto triples = [](const std::vector<std::string>& words) {
    std::set<std::string> set;
    for (std::size_t i = 0; i + 3 <= words.size(); ++i)
      set.insert(words[i] + " " + words[i + 1] + " " + words[i + 2]);
    return set;
  };
  const auto of_a = triples(a), of_b = triples(b);
  std::size_t common = 0;
  for (const auto& triple : of_a) common += of_b.count(triple);
  return 2.0 * static_cast<double>(common) / static_cast<double>(of_a.size() + of_b.size());
}

TEST(TestLines, AgreeWithTheDefinitionOfNear) {
  std::mt19937 random(5);
  const auto line_of = [&](std::size_t words) {
    std::vector<std::string> line;
    for (std::size_t i = 0; i < words; ++i) line.push_back(std::string(1, "abcd"[random() % 4]));
    return line;
  };
  const auto text = [](const std::vector<std::string>& words) {
    std::string joined;
    for (const auto& word : words) joined += word + " ";
    return joined;
  };
  std::vector<std::vector<std::string>> lines;
  TestLines tests;
  for (int i = 0; i < 30; ++i) {
    lines.push_back(line_of(5 + random() % 20));
    tests.add(text(lines.back()));
  }
  TestLines::Scratch scratch;
  int near = 0;
  for (int i = 0; i < 3000; ++i) {
    auto line = lines[random() % lines.size()];
    for (std::size_t changes = random() % 4; changes > 0; --changes)
      line[random() % line.size()] = std::string(1, "abcd"[random() % 4]);
    if (random() % 2 == 0) line.push_back("e");
    double best = 0;
    for (const auto& test : lines) best = std::max(best, test == line ? 1.0 : dice(test, line));
    const bool found = tests.find(text(line), scratch) != Overlap::none;
    EXPECT_EQ(best >= 0.8 - 1e-12, found) << text(line) << best;
    near += static_cast<int>(found);
  }
  EXPECT_GT(near, 300);
  EXPECT_LT(near, 2700);
}

class Doctor : public testing::Test {
 protected:
  DoctorReport look(const std::string& source, const std::string& target,
                    DoctorSettings settings = {}) {
    files_.source = folder_.write("corpus.en", source);
    files_.target = folder_.write("corpus.de", target);
    return examine(files_, settings);
  }
  std::string cleaned(const std::string& name) { return read_file(folder_ / "out" / name); }

  testkit::TempFolder folder_;
  DoctorFiles files_;
};

const Found& found(const DoctorReport& report, PairFault fault) {
  return report.pair_faults[static_cast<std::size_t>(fault)];
}
const Found& found(const SideReport& side, LineFault fault) {
  return side.faults[static_cast<std::size_t>(fault)];
}

TEST_F(Doctor, CountsAndTellsTheFirstLines) {
  const DoctorReport report =
      look("one\n\nx\none\n\n\n \nsame\none\n", "eins\na\nb\neins\nc\nd\ne\nsame\neins\n");
  EXPECT_EQ(4, found(report.source, LineFault::empty).lines);
  EXPECT_THAT(found(report.source, LineFault::empty).first, ElementsAre(2, 5, 6));
  EXPECT_EQ(0, found(report.target, LineFault::empty).lines);
  EXPECT_EQ(2, found(report, PairFault::duplicate).lines);
  EXPECT_THAT(found(report, PairFault::duplicate).first, ElementsAre(4, 9, 0));
  EXPECT_THAT(found(report, PairFault::copy).first, ElementsAre(8, 0, 0));
  EXPECT_EQ(9, report.source.lines);
}

TEST_F(Doctor, TellsLengthsRatiosAndScripts) {
  const std::string source = "short\nlong words here\nabcdefghij\nfourth\nпривет\n";
  const std::string target =
      "kurz\n" + std::string(60, 'x') + "\n" + std::string(50, 'y') + "\nviertens\nhallo\n";
  const DoctorReport report =
      look(source, target, {.max_length = 55, .max_ratio = 3, .threads = 2});
  EXPECT_THAT(found(report, PairFault::too_long).first, ElementsAre(2, 0, 0));
  // (50 + 10) / (10 + 10) is not above 3
  EXPECT_EQ(0, found(report, PairFault::ratio).lines);
  EXPECT_THAT(found(look(source, target, {.max_ratio = 2.9}), PairFault::ratio).first,
              ElementsAre(3, 0, 0));
  EXPECT_EQ("Latin", report.source.script);
  EXPECT_THAT(found(report.source, LineFault::script).first, ElementsAre(5, 0, 0));
  EXPECT_EQ(0, found(report.target, LineFault::script).lines);
}

TEST_F(Doctor, IsTheSameForAnyNumberOfThreads) {
  std::string source, target;
  std::mt19937 random(3);
  for (int i = 0; i < 40000; ++i) {
    source += "line " + std::to_string(random() % 20000) + (i % 97 == 0 ? "\u2028" : "") + "\n";
    target += i % 101 == 0 ? "\n" : "Zeile " + std::to_string(random() % 3) + "\n";
  }
  const DoctorReport one = look(source, target, {.threads = 1}),
                     three = look(source, target, {.threads = 3});
  ASSERT_EQ(40000, one.verdicts.size());
  EXPECT_GT(found(one, PairFault::duplicate).lines, 1000);
  for (std::size_t i = 0; i < one.verdicts.size(); ++i) {
    ASSERT_EQ(one.verdicts[i].source, three.verdicts[i].source) << i;
    ASSERT_EQ(one.verdicts[i].target, three.verdicts[i].target) << i;
    ASSERT_EQ(one.verdicts[i].pair, three.verdicts[i].pair) << i;
  }
}

TEST_F(Doctor, CleansIntoSomethingHealthy) {
  const std::string long_line(100000, 'z');
  files_.tests = {folder_.write("test.de", "Dies steht auch in der Prüfung.\n")};
  const DoctorReport report = look("good\n\u2028\nbad \xff\nfÃ¼r\nu\u0308\nsame\nfür\n" +
                                       long_line + "\nIn the test.\n\x01\nlast",
                                   "gut\nleer\nschlecht\ndrei\nvier\nsame\ndrei\nlang\nDies steht "
                                   "auch in der Prüfung.\nx\nletzte");
  const CleanedCounts counts = clean(files_, report, folder_ / "out");
  EXPECT_EQ("good\nfür\nü\nlast\n", cleaned("corpus.en"));
  EXPECT_EQ("gut\ndrei\nvier\nletzte\n", cleaned("corpus.de"));
  EXPECT_EQ(4, counts.kept);
  EXPECT_EQ(2, counts.changed);
  EXPECT_EQ(7, counts.dropped);

  std::vector<std::string> log;
  for (const std::string& line : read_lines(folder_ / "out" / "doctor.jsonl")) {
    const auto entry = nlohmann::json::parse(line);
    log.push_back(entry["line"].dump() + entry["action"].dump() + entry["source"].dump() +
                  entry["pair"].dump());
  }
  EXPECT_THAT(
      log,
      ElementsAre("2\"dropped\"[\"empty\",\"line separators\"][]",
                  "3\"dropped\"[\"invalid UTF-8\"][]", "4\"changed\"[\"double-encoded\"][]",
                  "5\"changed\"[\"not in NFC\"][]", "6\"dropped\"[][\"copies (source = target)\"]",
                  "7\"dropped\"[][\"duplicates\"]", "8\"dropped\"[][\"out of ratio\",\"too long\"]",
                  "9\"dropped\"[][\"in the test set\"]",
                  "10\"dropped\"[\"empty\",\"control characters\"][]"));

  files_.source = folder_ / "out" / "corpus.en";
  files_.target = folder_ / "out" / "corpus.de";
  for (const PairVerdict& verdict : examine(files_, {}).verdicts)
    EXPECT_EQ(0, verdict.source | verdict.target | verdict.pair);
}

TEST_F(Doctor, DoesNotCleanWhatItCannot) {
  const auto message = [&](const DoctorReport& report, const std::string& out) {
    return testkit::message_of<UserError>([&] { clean(files_, report, folder_ / out); });
  };
  const DoctorReport unequal = look("a\nb\nc\n", "x\ny\n");
  EXPECT_EQ(3, unequal.source.lines);
  EXPECT_EQ(2, unequal.target.lines);
  EXPECT_EQ(2, unequal.verdicts.size());
  EXPECT_THAT(message(unequal, "out"), HasSubstr("has 3 lines but"));
  const DoctorReport report = look("a\nb\n", "x\ny\n");
  EXPECT_THAT(message(report, "."), HasSubstr("which is being read"));
  EXPECT_EQ("a\nb\n", read_file(files_.source));
  folder_.write("corpus.de", "x\n");
  EXPECT_THAT(message(report, "out"), HasSubstr("changed while it was read"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out" / "corpus.en"));
  files_.target = files_.source;
  EXPECT_THAT(message(report, "out"), HasSubstr("give them different names"));
  EXPECT_THAT(testkit::message_of<UserError>(
                  [&] { examine({.source = "-", .target = "x", .tests = {}}, {}); }),
              HasSubstr("can't be standard input"));
}

TEST_F(Doctor, LeavesNothingHalfWrittenOnAFullDisk) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i) + " is a line\n";
  const DoctorReport report = look(text, text);  // copies, all of them: the log gets long
  const std::string message = testkit::with_file_size_limit(100000, [&] {
    return testkit::message_of<UserError>([&] { clean(files_, report, folder_ / "out"); });
  });
  EXPECT_THAT(message, HasSubstr("doctor.jsonl"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "out"));
}

}  // namespace
}  // namespace octavo
