#include "data/subwords.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

#include <cmath>
#include <map>
#include <numeric>

#include "core/error.h"
#include "core/file.h"
#include "core/lines.h"
#include "data/subword_training.h"
#include "tests/data/subword_samples.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;
using testkit::encode;
using testkit::foreign_model;
using testkit::Ids;
using testkit::message_of;
using testkit::sample_lines;

std::vector<std::string> training_lines() {
  std::vector<std::string> lines = sample_lines("train.en");
  std::vector<std::string> more = sample_lines("train.de");
  lines.resize(1000);
  more.resize(1000);
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

/// One model of each kind for all tests of this file.
const std::string& model_file(SubwordKind kind) {
  static const auto train = [](SubwordKind k) {
    return train_subwords({.kind = k, .vocabulary_size = 1500, .character_coverage = 0.9995},
                          training_lines());
  };
  static const std::string bpe = train(SubwordKind::bpe), unigram = train(SubwordKind::unigram);
  return kind == SubwordKind::bpe ? bpe : unigram;
}

const std::vector<std::string>& nasty_strings() {
  static const std::vector<std::string> strings = {
      "",
      " ",
      "  ",
      " leading",
      "trailing ",
      "double  space   triple",
      "\ttab\tand more\t",
      "no\u00A0break space",
      "\u2581",
      "\u2581already escaped\u2581 \u2581",
      "\u2585 the trainer's own UNK",
      "</s>",
      "a</s><s><pad><unk> b",
      "<0x41> is not A",
      std::string("NUL \0 inside", 12),
      "\x01\x02\x1b[31m\x7f",
      "\r carriage \r",
      "\v\f\x1c\x1d\x1e",
      "NEL \u0085 LS \u2028 PS \u2029",
      "\uFEFFbyte order mark",
      "full width \uFF21\uFF22 \u2460 ligature \uFB01",
      "cafe\u0301 and caf\u00E9",
      "\u4E2D\u6587\u6CA1\u6709\u7A7A\u683C",
      "\U0001F600\U0001F468\u200D\U0001F469\u200D\U0001F467",
      "\u202Eright to left \u0627\u0644\u0639",
      std::string(5000, 'x'),
      std::string(5000, ' '),
      "line\nfeed",
      "\U0010FFFF\uD7FF\uE000",
  };
  return strings;
}

/// Text of characters that are likely to break something, always valid UTF-8.
std::string random_text(RandomStream& random) {
  static const std::vector<std::string> parts = {
      " ",      " ",    "  ",     "\t",     "\u2581", "\u00A0", "</s>",   "<s>",
      "e",      "en",   "the",    "Die",    "ung",    ".",      "%",      "\u00FC",
      "\u00DF", "\x01", "\u2028", "\u4E2D", "7",      "A",      "\u0301", "\U0001F600"};
  std::string text;
  for (std::uint64_t n = random.below(24); n > 0; --n) text += parts[random.below(parts.size())];
  return text;
}

class SubwordsOfBothKinds : public ::testing::TestWithParam<SubwordKind> {
 protected:
  const Subwords subwords_{model_file(GetParam()), "test.model"};
  double mild() const { return GetParam() == SubwordKind::bpe ? 0.1 : 0.5; }
};

INSTANTIATE_TEST_SUITE_P(Kinds, SubwordsOfBothKinds,
                         ::testing::Values(SubwordKind::bpe, SubwordKind::unigram),
                         [](const auto& kind) {
                           return kind.param == SubwordKind::bpe ? "bpe" : "unigram";
                         });

TEST_P(SubwordsOfBothKinds, DecodingReturnsWhatWasEncoded) {
  SubwordEncoder encoder(subwords_);
  RandomStream random(1), draws(2);
  std::vector<std::string> texts = nasty_strings();
  for (int i = 0; i < 5000; ++i) texts.push_back(random_text(random));
  for (const std::string& text : texts) {
    for (const bool sampled : {false, true}) {
      Ids ids;
      if (sampled)
        encoder.sample(text, mild(), draws, ids);
      else
        encoder.encode(text, ids);
      EXPECT_EQ(subwords_.decode(ids), text);
      EXPECT_EQ(ids.empty(), text.empty());
      for (const std::int32_t id : ids) {
        EXPECT_NE(id, subwords_.vocabulary().pad());
        EXPECT_NE(id, subwords_.vocabulary().bos());
        EXPECT_NE(id, subwords_.vocabulary().eos());
        EXPECT_NE(id, subwords_.vocabulary().unk());
      }
    }
  }
}

TEST_P(SubwordsOfBothKinds, AgreesWithSentencePiece) {
  sentencepiece::SentencePieceProcessor oracle;
  ASSERT_TRUE(oracle.LoadFromSerializedProto(model_file(GetParam())).ok());
  SubwordEncoder encoder(subwords_);
  std::vector<std::string> texts;
  for (const char* name : {"train.en", "train.de", "dev.fr"}) {
    const auto lines = sample_lines(name);
    texts.insert(texts.end(), lines.begin(), lines.end());
  }
  RandomStream random(3);
  for (int i = 0; i < 3000; ++i) texts.push_back(random_text(random));
  texts.insert(texts.end(), nasty_strings().begin(), nasty_strings().end());
  int compared = 0, ties = 0;
  for (const std::string& text : texts) {
    // SentencePiece takes U+2581 for a space; we don't.
    if (text.find("\u2581") != std::string::npos) continue;
    Ids ids;
    encoder.encode(text, ids);
    const Ids expected = oracle.EncodeAsIds(text);
    ++compared;
    if (ids == expected) continue;
    // Ties, such as 00 0 against 0 00, fall as rounding will: it sums over the line, we by word.
    ++ties;
    const auto score = [&](double sum, std::int32_t id) { return sum + oracle.GetScore(id); };
    EXPECT_EQ(GetParam(), SubwordKind::unigram) << text;
    EXPECT_NEAR(std::accumulate(ids.begin(), ids.end(), 0.0, score),
                std::accumulate(expected.begin(), expected.end(), 0.0, score), 1e-4)
        << text;
  }
  EXPECT_GT(compared, 7000);
  EXPECT_LT(ties, 8);
}

TEST_P(SubwordsOfBothKinds, SpecialIdsAreTheHouses) {
  const Vocabulary& v = subwords_.vocabulary();
  EXPECT_EQ(v.size(), 1500);
  EXPECT_EQ(v.padded_size(), 1536);
  EXPECT_EQ((Ids{v.pad(), v.bos(), v.eos(), v.unk()}), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(v.piece(4), "<0x00>");
  // PAD, BOS, UNK and the byte of a line's end.
  EXPECT_THAT(v.never_generated(), ::testing::ElementsAre(0, 1, 3, 4 + '\n'));
}

TEST_P(SubwordsOfBothKinds, TrainingIsDeterministic) {
  EXPECT_EQ(
      train_subwords({.kind = GetParam(), .vocabulary_size = 1500, .character_coverage = 0.9995},
                     training_lines()),
      model_file(GetParam()));
}

TEST_P(SubwordsOfBothKinds, SamplingIsAFunctionOfItsStream) {
  const std::string text = sample_lines("dev.en")[0];
  SubwordEncoder encoder(subwords_), other(subwords_);
  Ids first, second, third;
  other.encode("something else first", third);
  third.clear();
  RandomStream a(7), b(7), c(8);
  encoder.sample(text, mild(), a, first);
  other.sample(text, mild(), b, second);
  other.sample(text, mild(), c, third);
  EXPECT_EQ(first, second);
  EXPECT_NE(first, third);
}

TEST_P(SubwordsOfBothKinds, ExtremeParametersGiveTheBestSegmentation) {
  SubwordEncoder encoder(subwords_);
  RandomStream random(1);
  for (const std::string& text : sample_lines("dev.de")) {
    Ids best, sampled;
    encoder.encode(text, best);
    encoder.sample(text, GetParam() == SubwordKind::bpe ? 0.0 : 1e5, random, sampled);
    EXPECT_EQ(sampled, best) << text;
  }
}

TEST_P(SubwordsOfBothKinds, ALongLineWithoutSpacesIsNoTrouble) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "Stra\u00DFe";
  EXPECT_EQ(subwords_.decode(encode(subwords_, text)), text);
  RandomStream random(1);
  Ids ids;
  SubwordEncoder(subwords_).sample(text, mild(), random, ids);
  EXPECT_EQ(subwords_.decode(ids), text);
}

TEST_P(SubwordsOfBothKinds, AnyBytesEncodeAndDecodeToValidText) {
  const std::string invalid = "a\xFF\xC3(\xE2\x96 b\x80\xED\xA0\x80";
  EXPECT_EQ(subwords_.decode(encode(subwords_, invalid)),
            "a\uFFFD\uFFFD(\uFFFD\uFFFD b\uFFFD\uFFFD\uFFFD\uFFFD");
  RandomStream random(5);
  for (int i = 0; i < 2000; ++i) {
    Ids ids(random.below(12));
    for (auto& id : ids) id = static_cast<std::int32_t>(random.below(1500));
    EXPECT_TRUE(is_valid_utf8(subwords_.decode(ids)));
  }
  EXPECT_THROW(subwords_.decode(Ids{1500}), InternalError);
  EXPECT_THROW(subwords_.decode(Ids{-1}), InternalError);
}

TEST_P(SubwordsOfBothKinds, DamagedModelsNeverCrash) {
  const std::string& whole = model_file(GetParam());
  RandomStream random(11);
  int refused = 0;
  const auto attempt = [&](const std::string& bytes) {
    try {
      const Subwords damaged(bytes, "damaged.model");
      const Ids ids = encode(damaged, "Die Datei \u00FC \t</s>");
      EXPECT_TRUE(is_valid_utf8(damaged.decode(ids)));
    } catch (const UserError&) {
      ++refused;
    }
  };
  for (int i = 0; i < 60; ++i) attempt(whole.substr(0, random.below(whole.size())));
  for (int i = 0; i < 60; ++i) {
    std::string flipped = whole;
    flipped[random.below(whole.size())] ^= static_cast<char>(1 << random.below(8));
    attempt(flipped);
  }
  EXPECT_GT(refused, 30);
}

/// Algorithm 1 of the BPE-dropout paper, word for word: at every step every possible merge is
/// dropped with probability p, and the best of the rest is done.
std::vector<std::string> dropout_reference(const std::vector<std::string>& characters,
                                           const std::map<std::string, float>& scores, double p,
                                           RandomStream& random) {
  std::vector<std::string> word = characters;
  for (;;) {
    std::size_t best = 0;
    float best_score = -HUGE_VALF;
    for (std::size_t i = 0; i + 1 < word.size(); ++i) {
      const auto found = scores.find(word[i] + word[i + 1]);
      if (found == scores.end() || random.uniform() < p) continue;
      if (found->second > best_score) {
        best = i + 1;
        best_score = found->second;
      }
    }
    if (best == 0) return word;
    word[best - 1] += word[best];
    word.erase(word.begin() + static_cast<std::ptrdiff_t>(best));
  }
}

TEST(BpeDropout, HasThePapersDistribution) {
  const std::string& file = model_file(SubwordKind::bpe);
  const Subwords subwords(file, "test.model");
  std::map<std::string, float> scores;
  for (const Piece& piece : parse_piece_model(file, "test.model").pieces) {
    if (piece.type == PieceType::normal) scores[surface(piece)] = piece.score;
  }
  const std::vector<std::string> characters = {" ", "s", "t", "e", "t", "e", "n"};
  SubwordEncoder encoder(subwords);
  RandomStream ours(1), theirs(2);
  constexpr int kTimes = 40000;
  std::map<std::vector<std::string>, std::array<double, 2>> seen;
  for (int i = 0; i < kTimes; ++i) {
    Ids ids;
    encoder.sample("steten", 0.3, ours, ids);
    std::vector<std::string> pieces;
    for (const std::int32_t id : ids) {
      std::string piece = subwords.vocabulary().piece(id);
      if (piece.starts_with("\u2581")) piece.replace(0, 3, " ");
      pieces.push_back(piece);
    }
    ++seen[pieces][0];
    ++seen[dropout_reference(characters, scores, 0.3, theirs)][1];
  }
  EXPECT_GT(seen.size(), 5u);
  for (const auto& [pieces, times] : seen) {
    EXPECT_NEAR(times[0], times[1], 5 * std::sqrt(times[0] + times[1]) + 5)
        << ::testing::PrintToString(pieces);
  }
}

TEST(BpeDropout, OfOneGivesCharacters) {
  const Subwords subwords(model_file(SubwordKind::bpe), "test.model");
  RandomStream random(1);
  Ids ids;
  SubwordEncoder(subwords).sample("to be", 1.0, random, ids);
  EXPECT_EQ(ids.size(), 6u);  // the space in front counts
}

TEST(UnigramSampling, HasTheModelsDistribution) {
  const std::string& file = model_file(SubwordKind::unigram);
  const Subwords subwords(file, "test.model");
  std::map<std::string, double> scores;
  for (const Piece& piece : parse_piece_model(file, "test.model").pieces) {
    if (piece.type == PieceType::normal) scores[surface(piece)] = piece.score;
  }
  // Every segmentation by brute force: one bit for each place where it may be cut.
  constexpr double kAlpha = 0.4;
  const std::string text = " steten";
  std::map<std::vector<std::string>, double> weights;
  double sum = 0;
  for (unsigned cuts = 0; cuts < 1u << (text.size() - 1); ++cuts) {
    std::vector<std::string> pieces(1);
    for (std::size_t i = 0; i < text.size(); ++i) {
      pieces.back() += text[i];
      if (i + 1 < text.size() && (cuts >> i & 1) != 0) pieces.emplace_back();
    }
    double score = 0;
    bool known = true;
    for (const std::string& piece : pieces) {
      known &= scores.contains(piece);
      if (known) score += scores[piece];
    }
    if (known) sum += weights[pieces] = std::exp(kAlpha * score);
  }
  SubwordEncoder encoder(subwords);
  RandomStream random(9);
  constexpr int kTimes = 50000;
  std::map<std::vector<std::string>, int> seen;
  for (int i = 0; i < kTimes; ++i) {
    Ids ids;
    encoder.sample("steten", kAlpha, random, ids);
    std::vector<std::string> pieces;
    for (const std::int32_t id : ids) {
      std::string piece = subwords.vocabulary().piece(id);
      if (piece.starts_with("\u2581")) piece.replace(0, 3, " ");
      pieces.push_back(piece);
    }
    ++seen[pieces];
  }
  EXPECT_GT(weights.size(), 5u);
  for (const auto& [pieces, times] : seen) EXPECT_TRUE(weights.contains(pieces));
  for (const auto& [pieces, weight] : weights) {
    const double expected = kTimes * weight / sum;
    EXPECT_NEAR(seen[pieces], expected, 5 * std::sqrt(expected) + 3)
        << ::testing::PrintToString(pieces);
  }
}

TEST(ForeignModel, WithDefaultsKeepsItsIdsAndGetsWhatItLacks) {
  for (const char* type : {"bpe", "unigram"}) {
    const std::string file = foreign_model({{"model_type", type}});
    sentencepiece::SentencePieceProcessor oracle;
    ASSERT_TRUE(oracle.LoadFromSerializedProto(file).ok());
    const Subwords subwords(file, "foreign.model");
    const Vocabulary& v = subwords.vocabulary();
    // SentencePiece's own numbers, then PAD and the bytes behind the last piece.
    EXPECT_EQ((Ids{v.unk(), v.bos(), v.eos(), v.pad()}), (Ids{0, 1, 2, 600}));
    EXPECT_EQ(v.size(), 600 + 1 + 256);
    EXPECT_EQ(v.piece(601), "<0x00>");
    for (std::int32_t id = 0; id < 600; ++id) ASSERT_EQ(v.piece(id), oracle.IdToPiece(id));
    // Where its normaliser has nothing to do, it cuts as SentencePiece does.
    for (const std::string& text : sample_lines("dev.en")) {
      if (text.find("  ") != std::string::npos) continue;
      const std::vector<int> expected = oracle.EncodeAsIds(text);
      if (std::find(expected.begin(), expected.end(), 0) != expected.end()) continue;
      EXPECT_EQ(encode(subwords, text), expected) << text;
    }
    for (const std::string& text : nasty_strings())
      EXPECT_EQ(subwords.decode(encode(subwords, text)), text);
  }
}

TEST(ForeignModel, OfOtherShapesAgreesWithSentencePiece) {
  const std::unordered_map<std::string, std::string> plain{{"normalization_rule_name", "identity"},
                                                           {"remove_extra_whitespaces", "false"},
                                                           {"byte_fallback", "true"}};
  for (const auto& [option, value] : std::vector<std::pair<std::string, std::string>>{
           {"add_dummy_prefix", "false"},
           {"split_by_whitespace", "false"},
           {"allow_whitespace_only_pieces", "true"},
           {"user_defined_symbols", "<sep>,ung,\u2581die"},
           {"control_symbols", "<2de>"}}) {
    for (const char* type : {"bpe", "unigram"}) {
      auto options = plain;
      options.insert({{option, value}, {"model_type", type}});
      const std::string file = foreign_model(options);
      sentencepiece::SentencePieceProcessor oracle;
      ASSERT_TRUE(oracle.LoadFromSerializedProto(file).ok());
      const Subwords subwords(file, "foreign.model");
      SubwordEncoder encoder(subwords);
      std::vector<std::string> texts = sample_lines("dev.de");
      texts.insert(texts.end(), {"a  b   c", "  ", "x<sep>die Zeitung<2de> ", "ungungung"});
      for (const std::string& text : texts) {
        Ids ids;
        encoder.encode(text, ids);
        EXPECT_EQ(ids, oracle.EncodeAsIds(text)) << option << ' ' << type << ": " << text;
        EXPECT_EQ(subwords.decode(ids), text) << option << ' ' << type;
      }
    }
  }
}

TEST(ForeignModel, ThatCantBeFollowedIsRefused) {
  const auto message = [](const std::string& file) {
    return message_of<UserError>([&] { Subwords subwords(file, "foreign.model"); });
  };
  EXPECT_THAT(message(foreign_model({{"model_type", "char"}, {"vocab_size", "90"}})),
              HasSubstr("foreign.model: a SentencePiece model of words or characters"));
  EXPECT_THAT(message(foreign_model({{"treat_whitespace_as_suffix", "true"}})),
              HasSubstr("suffix"));
  EXPECT_THAT(message(foreign_model({{"normalization_rule_name", "nmt_nfkc_cf"}})),
              HasSubstr("lower-cases"));
  EXPECT_THAT(message("Die Datei\n"), HasSubstr("not a SentencePiece model"));
  EXPECT_THAT(message(""), HasSubstr("not a SentencePiece model"));
  EXPECT_THAT(message_of<UserError>([] { Subwords::load("/nonexistent/x.model"); }),
              HasSubstr("/nonexistent/x.model"));
}

TEST(Vocabulary, FileIsOneEscapedLineForEachId) {
  const testkit::TempFolder folder;
  const Vocabulary v({"<pad>", "<s>", "</s>", "<unk>", "<2de>", "\u2581a\\b", "c\x01\n"}, {},
                     {3, 4, 1, 0});
  v.write(folder / "x.vocab");
  EXPECT_EQ(read_file(folder / "x.vocab"),
            "0\tpad\t<pad>\n1\tbos\t<s>\n2\teos\t</s>\n3\tunk\t<unk>\n4\tmute\t<2de>\n"
            "5\tpiece\t\u2581a\\\\b\n6\tpiece\tc\\x01\\x0A\n");
  EXPECT_EQ(v.hash(), hash_bytes(read_file(folder / "x.vocab")));
  EXPECT_EQ(v.padded_size(), 64);
  EXPECT_THROW(v.piece(7), InternalError);
  EXPECT_THROW(Vocabulary({"a"}, {}, {}), InternalError);
}

}  // namespace
}  // namespace octavo
