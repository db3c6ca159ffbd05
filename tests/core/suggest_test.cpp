#include "core/suggest.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo {
namespace {

const std::vector<std::string> kNames{"translate", "train", "score", "average", "inspect"};

TEST(Suggest, FindsTheNearestName) {
  EXPECT_EQ("translate", nearest("translat", kNames));
  EXPECT_EQ("translate", nearest("tarnslate", kNames));  // a swap counts once
  EXPECT_EQ("train", nearest("trian", kNames));
  EXPECT_EQ("score", nearest("scroe", kNames));
  EXPECT_EQ("average", nearest("AVERAGE", kNames));
  EXPECT_EQ("train", nearest("train", kNames));
  EXPECT_EQ(std::nullopt, nearest("evaluate", kNames));
  EXPECT_EQ(std::nullopt, nearest("", kNames));
  EXPECT_EQ(std::nullopt, nearest("x", {}));
  EXPECT_EQ("; did you mean 'score'?", did_you_mean("scor", kNames));
  EXPECT_EQ("", did_you_mean("xyz", kNames));
}

TEST(Suggest, AllowsOneMistakeInShortNames) {
  const std::vector<std::string> names{"ab", "cde"};
  EXPECT_EQ("ab", nearest("a", names));
  EXPECT_EQ("ab", nearest("ac", names));
  EXPECT_EQ(std::nullopt, nearest("xy", names));
}

}  // namespace
}  // namespace octavo
