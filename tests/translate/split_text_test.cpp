#include "translate/split_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/lines.h"
#include "core/philox.h"

namespace octavo {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

auto part(const std::string& text, std::string_view joint) {
  return ::testing::AllOf(Field(&TextPart::text, text), Field(&TextPart::joint, joint));
}

std::vector<TextPart> split_to(std::string_view text, std::size_t bytes) {
  return split_text(text, [=](std::string_view t) { return t.size() <= bytes; });
}

TEST(SplitText, LeavesWhatFits) {
  EXPECT_THAT(split_to("one two", 7), ElementsAre(part("one two", "")));
  EXPECT_THAT(split_to("", 0), ElementsAre(part("", "")));
}

TEST(SplitText, PrefersSentencesThenClausesThenWords) {
  EXPECT_THAT(split_to("Ab cd. Efgh, ij kl", 12),
              ElementsAre(part("Ab cd.", " "), part("Efgh, ij kl", "")));
  EXPECT_THAT(split_to("\"Ab cd!\") efgh, ij", 12),
              ElementsAre(part("\"Ab cd!\")", " "), part("efgh, ij", "")));
  EXPECT_THAT(split_to("ab cd, efgh ij kl", 12),
              ElementsAre(part("ab cd,", " "), part("efgh ij kl", "")));
  EXPECT_THAT(split_to("abcd efgh ijk lmn", 12),
              ElementsAre(part("abcd efgh", " "), part("ijk lmn", "")));
}

TEST(SplitText, CutsWordsBetweenCharacters) {
  EXPECT_THAT(split_to("abcdefgh", 4), ElementsAre(part("abcd", ""), part("efgh", "")));
  EXPECT_THAT(split_to("a\u00FC\u00FC", 4), ElementsAre(part("a", ""), part("\u00FC\u00FC", "")));
  EXPECT_THAT(split_to("\U0001F600\U0001F600a", 4),
              ElementsAre(part("\U0001F600", ""), part("\U0001F600", ""), part("a", "")));
}

TEST(SplitText, LosesNothingAndNeverCutsACharacter) {
  RandomStream random(3);
  for (int round = 0; round < 300; ++round) {
    const std::vector<std::string> alphabet{
        " ", " ", "a", "b.", ",", "\u00E4", "\u2028", "\U0001F600", std::string(1, '\0')};
    std::string text;
    for (std::uint64_t n = random.below(120); n > 0; --n)
      text += alphabet[random.below(alphabet.size())];
    std::string joined;
    for (const TextPart& p : split_to(text, 4 + random.below(20))) {
      EXPECT_TRUE(is_valid_utf8(p.text));
      joined += p.text;
      joined += p.joint;
    }
    EXPECT_EQ(joined, text);
  }
}

TEST(SplitText, ALineOfAHundredThousandCharacters) {
  for (const std::string& unit :
       {std::string("x"), std::string(" "), std::string("a "), std::string("\u00E4")}) {
    std::string text;
    while (text.size() < 100'000) text += unit;
    const std::vector<TextPart> parts = split_to(text, 1000);
    EXPECT_GE(parts.size(), 100u);
    EXPECT_LE(parts.size(), 260u);
  }
}

}  // namespace
}  // namespace octavo
