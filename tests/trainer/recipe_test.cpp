#include "trainer/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/file.h"
#include "data/prepare.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using testkit::TempFolder;

Recipe recipe(const std::string& rate) {
  return {.program = {{"octavo", "0.1.0"}},
          .machine = {{"ranks", "8"}},
          .settings = {{"rate", rate}, {"name", "\"ä\"\n"}},
          .data = {{"train.0.source", "0123 (3 lines)"}}};
}

TEST(RecipeLock, KeepsEveryStartThatIsNew) {
  const TempFolder run;
  const auto file = run / "recipe.lock";
  note_start(run.path(), {.update = 0, .recipe = recipe("1")});
  note_start(run.path(), {.update = 100, .recipe = recipe("1")});
  EXPECT_EQ(1, read_recipe_lock(file).size());
  note_start(run.path(), {.update = 200, .recipe = recipe("2")});
  note_start(run.path(), {.update = 300, .recipe = recipe("1")});
  const auto starts = read_recipe_lock(file);
  ASSERT_EQ(3, starts.size());
  EXPECT_EQ(200, starts[1].update);
  EXPECT_EQ(recipe("2"), starts[1].recipe);
  EXPECT_EQ(recipe("1"), starts[2].recipe);
  note_start(run.path(), {.update = 0, .recipe = recipe("3")});  // a new run in the old folder
  ASSERT_EQ(1, read_recipe_lock(file).size());
  EXPECT_EQ(recipe("3"), read_recipe_lock(file)[0].recipe);
}

TEST(RecipeLock, RefusesWhatIsDamaged) {
  const TempFolder run;
  const auto message = [&](const std::string& text) {
    return testkit::message_of<UserError>(
        [&] { read_recipe_lock(run.write("recipe.lock", text)); });
  };
  EXPECT_THAT(message("{\"format\": \"octavo rec"), HasSubstr("damaged"));
  EXPECT_THAT(message("{}"), HasSubstr("damaged"));
  EXPECT_THAT(message(R"({"format": "other", "version": 1, "starts": []})"),
              HasSubstr("no recipe that this program can read"));
  EXPECT_THAT(message(R"({"format": "octavo recipe", "version": 1, "starts": [{"update": 0}]})"),
              HasSubstr("damaged"));
}

TEST(Differences, AreTheValuesThatAreNotEqual) {
  const auto list =
      differences({{"a", "1"}, {"b", "2"}, {"c", "3"}}, {{"b", "2"}, {"c", "4"}, {"d", "5"}});
  ASSERT_EQ(3, list.size());
  EXPECT_EQ("a", list[0].name);
  EXPECT_EQ("1", list[0].then);
  EXPECT_EQ("(none)", list[0].now);
  EXPECT_EQ("3", list[1].then);
  EXPECT_EQ("4", list[1].now);
  EXPECT_EQ("(none)", list[2].then);
  EXPECT_EQ("5", list[2].now);
}

TEST(Differences, LeaveOutWhereThingsLie) {
  for (const char* key :
       {"data.prepared", "trainer.output", "data.train[0].source", "data.dev.target"})
    EXPECT_TRUE(names_a_place(key)) << key;
  for (const char* key : {"data.max_ratio", "data.train[0].weight", "trainer.seed"})
    EXPECT_FALSE(names_a_place(key)) << key;
}

class PreparedFacts : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "line number " + std::to_string(i * 7919 % 1000) + "\n";
    config_.prepared = folder_ / "prepared";
    config_.train = {
        {.source = folder_.write("a.en", text), .target = folder_.write("a.de", text)}};
    config_.subwords.vocabulary_size = 300;
    prepare(config_, 1);
  }
  TempFolder folder_;
  DataConfig config_;
};

TEST_F(PreparedFacts, AreWhatLiesHere) {
  const Facts facts = prepared_facts(config_);
  EXPECT_EQ(facts, facts_here(config_));
  EXPECT_EQ(6, facts.size());
  EXPECT_EQ(hash_file(folder_ / "a.en") + " (200 lines)", facts.at("train.0.source"));
  EXPECT_EQ(hash_file(folder_ / "prepared/subwords.model"), facts.at("subwords.model"));
  EXPECT_THAT(facts.at("train.0.kept"), HasSubstr("200 pairs, "));
}

TEST_F(PreparedFacts, TellWhatIsGoneOrChanged) {
  const Facts facts = prepared_facts(config_);
  folder_.write("a.de", "other\n");
  folder_.write("prepared/subwords.vocab", "other\n");
  std::filesystem::remove(folder_ / "a.en");
  std::filesystem::remove(folder_ / "prepared/train.0.corpus");
  std::vector<std::string> names;
  for (const RecipeDifference& d : differences(facts, facts_here(config_)))
    names.push_back(d.name + (d.now == "(none)" ? " gone" : ""));
  EXPECT_THAT(names, testing::ElementsAre("subwords.vocab", "train.0.corpus gone",
                                          "train.0.source gone", "train.0.target"));
}

}  // namespace
}  // namespace octavo
