#include "core/settings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "core/error.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {

enum class Kind { plain, nesterov_ish };
template <>
struct EnumNames<Kind> {
  static constexpr std::pair<Kind, std::string_view> values[] = {
      {Kind::plain, "plain"}, {Kind::nesterov_ish, "nesterov-ish"}};
};

namespace {

using testing::HasSubstr;
using testkit::message_of;
using testkit::TempFolder;
using Overrides = std::vector<std::string>;

struct OptimizerConfig {
  double learning_rate = 5e-4;
  int warmup_updates = 4000;
  std::optional<double> clip_norm = 1.0;
  Kind kind = Kind::plain;

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("learning_rate", learning_rate, "peak rate, reached after warmup", v.open(0, 1));
    v.setting("warmup_updates", warmup_updates, "updates from 0 to the peak", v.at_least(0));
    v.setting("clip_norm", clip_norm, "global gradient norm", v.above(0));
    v.setting("kind", kind, "which one");
  }
};

struct Corpus {
  std::string source, target = "t";
  double weight = 1;

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("source", source, "text of one side", v.required());
    v.setting(
        "target", target,
        "text of the other side, described at such length that the comment can't stand behind "
        "the value on one line");
    v.setting("weight", weight, "copies per epoch", v.above(0), v.at_most(100), v.may_change());
  }
};

struct LogConfig {
  std::int64_t every = 100;
  bool live = false;

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("every", every, "updates between lines", v.at_least(1));
    v.setting("live", live, "one line that moves");
  }
};

struct Config {
  std::int64_t seed = 1;
  OptimizerConfig optimizer;
  std::vector<Corpus> train;
  std::vector<std::string> tags{"a"};
  std::vector<int> sizes;
  std::string name = "x";
  std::optional<std::string> suffix;
  std::optional<std::int64_t> max_tokens;
  LogConfig log;
  int width = 512, heads = 8;

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("seed", seed, "start of all randomness");
    v.section("optimizer", optimizer, "the optimiser");
    v.setting("train", train, "training corpora");
    v.setting("tags", tags, "words");
    v.setting("sizes", sizes, "numbers", v.closed(1, 9));
    v.setting("name", name, "what to call it");
    v.setting("suffix", suffix, "what to add to the name");
    v.setting("max_tokens", max_tokens, "tokens of a micro-batch", v.at_least(1),
              v.empty_is("auto"), v.may_change());
    v.section("log", log, "progress", v.may_change());
    v.setting("width", width, "width of the model", v.at_least(1));
    v.setting("heads", heads, "heads of attention", v.at_least(1));
    v.check(width % heads == 0, "heads", "it must divide width, " + std::to_string(width));
  }
};

Config read(const std::string& yaml, const Overrides& overrides = {}) {
  const TempFolder folder;
  Config config;
  read_settings(config, folder.write("x.yaml", yaml), overrides);
  return config;
}

/// The message without the temporary folder.
std::string refusal(const std::string& yaml, const Overrides& overrides = {}) {
  std::string message = message_of<UserError>([&] { read(yaml, overrides); });
  if (const std::size_t at = message.find("x.yaml"); message.starts_with('/')) message.erase(0, at);
  return message;
}

std::string refused_value(const std::string& line) {
  return refusal(line + "\n").substr(10);
}

TEST(Settings, AreRead) {
  const Config config = read(
      "seed: 42\n"
      "optimizer:\n"
      "  learning_rate: 1e-3\n"
      "  clip_norm: none\n"
      "  kind: nesterov-ish\n"
      "train:\n"
      "  - {source: a.en, target: a.de}\n"
      "  - source: b.en\n"
      "    weight: 2\n"
      "tags: [one, 'two words', 3]\n"
      "sizes: [1, 2]\n"
      "name: 2014\n"
      "suffix: 'none'\n"
      "max_tokens: 4096\n"
      "log:\n"
      "  live: true\n");
  EXPECT_EQ(42, config.seed);
  EXPECT_EQ(1e-3, config.optimizer.learning_rate);
  EXPECT_EQ(4000, config.optimizer.warmup_updates);
  EXPECT_EQ(std::nullopt, config.optimizer.clip_norm);
  EXPECT_EQ(Kind::nesterov_ish, config.optimizer.kind);
  ASSERT_EQ(2u, config.train.size());
  EXPECT_EQ("a.de", config.train[0].target);
  EXPECT_EQ("b.en", config.train[1].source);
  EXPECT_EQ(2, config.train[1].weight);
  EXPECT_EQ((std::vector<std::string>{"one", "two words", "3"}), config.tags);
  EXPECT_EQ((std::vector<int>{1, 2}), config.sizes);
  EXPECT_EQ("2014", config.name);
  EXPECT_EQ("none", config.suffix);
  EXPECT_EQ(4096, config.max_tokens);
  EXPECT_TRUE(config.log.live);
}

TEST(Settings, KeepDefaultsWhenAbsent) {
  for (const char* yaml : {"", "# nothing\n", "optimizer:\n", "optimizer: {}\nlog:\n"}) {
    EXPECT_EQ(flatten(Config{}), flatten(read(yaml))) << yaml;
  }
}

TEST(Settings, RefuseUnknownNames) {
  EXPECT_EQ("x.yaml:4: no setting optimizer.warmup_update; did you mean 'warmup_updates'?",
            refusal("seed: 1\noptimizer:\n  learning_rate: 0.1\n  warmup_update: 10\n"));
  EXPECT_EQ("x.yaml:1: no setting optimiser; did you mean 'optimizer'?",
            refusal("optimiser:\n  learning_rate: 0.1\n"));
  EXPECT_EQ("x.yaml:2: no setting log.learning_rate; did you mean 'optimizer.learning_rate'?",
            refusal("log:\n  learning_rate: 0.1\n"));
  EXPECT_EQ("x.yaml:1: no setting colour; 'octavo settings' lists all", refusal("colour: red\n"));
  EXPECT_EQ("x.yaml:3: no setting train[1].wieght; did you mean 'weight'?",
            refusal("train:\n  - source: a\n  - {source: b, wieght: 1}\n"));
}

TEST(Settings, RefuseBadRanges) {
  EXPECT_EQ("x.yaml:2: optimizer.learning_rate is 7; it must be between 0 and 1, ends excluded",
            refusal("optimizer:\n  learning_rate: 7\n"));
  EXPECT_THAT(refusal("optimizer: {learning_rate: 1}"), HasSubstr("ends excluded"));
  EXPECT_THAT(refusal("optimizer: {learning_rate: 0}"), HasSubstr("ends excluded"));
  EXPECT_EQ("x.yaml:1: optimizer.warmup_updates is -1; it must be at least 0",
            refusal("optimizer: {warmup_updates: -1}"));
  EXPECT_EQ("x.yaml:1: optimizer.clip_norm is 0; it must be above 0",
            refusal("optimizer: {clip_norm: 0}"));
  EXPECT_EQ("x.yaml:1: train[0].weight is 101; it must be above 0 and at most 100",
            refusal("train: [{source: a, weight: 101}]"));
  EXPECT_EQ(0, read("optimizer: {warmup_updates: 0}").optimizer.warmup_updates);
  EXPECT_EQ(100, read("train: [{source: a, weight: 100}]").train[0].weight);
  EXPECT_EQ("x.yaml:1: sizes is a list; it must be between 1 and 9, ends included",
            refusal("sizes: [1, 10]"));
}

TEST(Settings, ReadIntegersStrictly) {
  EXPECT_EQ(100'000, read("seed: 1e5").seed);
  EXPECT_EQ(2'500'000, read("seed: 2.5E6").seed);
  EXPECT_EQ(-7, read("seed: -7").seed);
  EXPECT_EQ(7, read("seed: +7").seed);
  EXPECT_EQ(0, read("seed: 0").seed);
  EXPECT_EQ(INT64_MAX, read("seed: 9223372036854775807").seed);
  EXPECT_EQ(INT64_MIN, read("seed: -9223372036854775808").seed);
  EXPECT_EQ(
      "seed is 010; it must be an integer; write 10 (some programs take a leading 0 for octal)",
      refused_value("seed: 010"));
  EXPECT_EQ("seed is '5'; it must be an integer; leave out the quotes", refused_value("seed: '5'"));
  EXPECT_EQ("seed is empty; it must be an integer; give it a value", refused_value("seed:"));
  EXPECT_EQ("seed is a section; it must be an integer", refused_value("seed: {a: 1}"));
  EXPECT_EQ("seed is a list; it must be an integer", refused_value("seed: [1]"));
  for (const char* bad : {"1.5", "4.0", "1e-1", "1.5e0", "0x10", "1_000", "1,000", "abc", "'1 '",
                          "true", "--1", "+-1", "1e", "none", "\"\"", "1 2", "00", "inf", "nan"})
    EXPECT_THAT(refusal(std::string("seed: ") + bad), HasSubstr("it must be an integer")) << bad;
  for (const char* large : {"9223372036854775808", "1e16", "1e400", "-99999999999999999999"})
    EXPECT_THAT(refusal(std::string("seed: ") + large), HasSubstr("too large")) << large;
  EXPECT_EQ("optimizer.warmup_updates is 3000000000; that is too large (or too near 0) to be kept",
            refused_value("optimizer: {warmup_updates: 3000000000}"));
}

TEST(Settings, ReadNumbersStrictly) {
  const auto rate = [](const std::string& text) {
    return read("optimizer: {learning_rate: " + text + "}").optimizer.learning_rate;
  };
  EXPECT_EQ(0.25, rate("0.25"));
  EXPECT_EQ(0.5, rate(".5"));
  EXPECT_EQ(0.5, rate("+0.5"));
  EXPECT_EQ(1e-9, rate("1E-9"));
  EXPECT_EQ(0.1, rate("0.1"));
  for (const char* bad : {"fast", "1.2.3", "0,5", "1e", ".inf", "inf", ".nan", "nan", "01.5",
                          "0x1p-3", "'0.5'", "1/2", "~", "", "true", "."})
    EXPECT_THAT(refusal(fmt::format("optimizer:\n  learning_rate: {}\n", bad)),
                HasSubstr("it must be a number, between 0 and 1, ends excluded"))
        << bad;
}

TEST(Settings, ReadBooleansStrictly) {
  EXPECT_TRUE(read("log: {live: true}").log.live);
  for (const char* bad : {"yes", "on", "True", "1", "0", "'true'", "[]"})
    EXPECT_THAT(refusal(fmt::format("log: {{live: {}}}", bad)),
                HasSubstr("it must be true or false"))
        << bad;
}

TEST(Settings, ReadChoicesTextsAndOptionals) {
  EXPECT_EQ("optimizer.kind is 'nesterov'; it must be one of plain, nesterov-ish",
            refused_value("optimizer: {kind: nesterov}"));
  EXPECT_EQ("optimizer.clip_norm is 'auto'; it must be a number, above 0, or none",
            refused_value("optimizer: {clip_norm: auto}"));
  EXPECT_EQ("max_tokens is 'none'; it must be an integer, at least 1, or auto",
            refused_value("max_tokens: none"));
  EXPECT_EQ(std::nullopt, read("max_tokens: auto").max_tokens);
  EXPECT_EQ(std::nullopt, read("suffix: none").suffix);
  EXPECT_EQ("", read("suffix: ''").suffix);
  EXPECT_EQ("name is a list; it must be a text", refused_value("name: [a]"));
  EXPECT_THAT(refusal("name: ~"), HasSubstr("name is empty; it must be a text"));
  EXPECT_THAT(refusal("tags: one"), HasSubstr("tags is 'one'; it must be a list"));
  EXPECT_THAT(refusal("tags: [[a]]"), HasSubstr("it must be a list"));
  EXPECT_TRUE(read("tags: []").tags.empty());
  const std::string echo = refusal("seed: " + std::string(500, 'y'));
  EXPECT_LT(echo.size(), 120u) << "long values are shortened";
}

TEST(Settings, RefuseWrongStructure) {
  EXPECT_EQ("optimizer is 5; it must be a section, 'name: value' lines below it",
            refused_value("optimizer: 5"));
  EXPECT_EQ("train is 'a.en'; it must be a list of sections, each starting with '-'",
            refused_value("train: a.en"));
  EXPECT_EQ("x.yaml:2: train[0] is 'a.en'; it must be a section, 'name: value' lines below it",
            refusal("train:\n  - a.en\n"));
}

TEST(Settings, MustBeGivenWhereRequired) {
  EXPECT_EQ("x.yaml:2: train[0].source is not set and has no default: text of one side",
            refusal("train:\n  - target: b\n"));
  EXPECT_EQ("x.yaml:1: train[0].source is empty; give it a value",
            refusal("train: [{source: ''}]"));
  // The misspelt name is the better message.
  EXPECT_THAT(refusal("train: [{sourse: a}]"), HasSubstr("did you mean 'source'?"));
}

TEST(Settings, MayDependOnEachOther) {
  EXPECT_EQ("x.yaml:2: heads is 7; it must divide width, 512", refusal("seed: 1\nheads: 7\n"));
  EXPECT_EQ("x.yaml: heads is 8; it must divide width, 20", refusal("width: 20\n"));
  EXPECT_EQ(20, read("width: 20\nheads: 5\n").width);
}

TEST(Settings, MayBeOverridden) {
  const Config config = read("seed: 5\nlog:\n  every: 7\n",
                             {"optimizer.learning_rate=0.25", "log.every=8", "log.every=9",
                              "tags=[x, y]", "train=[{source: s}]", "suffix=''"});
  EXPECT_EQ(5, config.seed);
  EXPECT_EQ(0.25, config.optimizer.learning_rate);
  EXPECT_EQ(9, config.log.every);
  EXPECT_EQ((std::vector<std::string>{"x", "y"}), config.tags);
  EXPECT_EQ("s", config.train.at(0).source);
  EXPECT_EQ("", config.suffix);
}

TEST(Settings, NameTheOverrideThatIsWrong) {
  EXPECT_EQ(
      "--set optimizer.learning_rate=7: optimizer.learning_rate is 7; it must be between 0 "
      "and 1, ends excluded",
      refusal("", {"optimizer.learning_rate=7"}));
  EXPECT_EQ(
      "--set optimizer.warmup_update=5: no setting optimizer.warmup_update; did you mean "
      "'warmup_updates'?",
      refusal("", {"optimizer.warmup_update=5"}));
  EXPECT_EQ(
      "--set log.every=: log.every is empty; it must be an integer, at least 1; give it a value",
      refusal("", {"log.every="}));
  const std::string message = refusal("train: [{source: a}]", {"train.weight=2"});
  EXPECT_THAT(message, testing::StartsWith("--set train.weight=2: train is not a section ("));
  EXPECT_THAT(message, testing::EndsWith("x.yaml:1)"));
}

TEST(Settings, SurviveWritingAndReading) {
  std::mt19937_64 random(5);
  const auto text = [&] {
    static const std::string kPieces[] = {
        "a", "Z", "0", " ", "\n",   "\t",   "'",    "\"",   "\\",   ": ",   "#",   "-",
        "[", "}", "~", "ü", "\x01", "\x7f", "none", "auto", "null", "true", "1e5", "\xE2\x80\xA8",
        "&", "*"};
    std::string t;
    for (std::uint64_t n = random() % 6; n > 0; --n) t += kPieces[random() % std::size(kPieces)];
    return t;
  };
  const auto number = [&] {  // any positive double
    return std::bit_cast<double>(random() % 0x7ff0000000000000u);
  };
  for (int round = 0; round < 2000; ++round) {
    Config config;
    config.seed = static_cast<std::int64_t>(random());
    do config.optimizer.learning_rate = number();
    while (config.optimizer.learning_rate >= 1 || config.optimizer.learning_rate == 0);
    config.optimizer.clip_norm = number();
    if (*config.optimizer.clip_norm == 0 || round % 3 == 0) config.optimizer.clip_norm.reset();
    config.optimizer.kind = round % 2 == 0 ? Kind::plain : Kind::nesterov_ish;
    config.name = text();
    if (round % 2 == 0) config.suffix = text();
    if (round % 5 == 0) config.max_tokens = 1 + static_cast<std::int64_t>(random() % 1000);
    config.tags.clear();
    for (int i = 0; i < round % 4; ++i) config.tags.push_back(text());
    for (int i = 0; i < round % 3; ++i)
      config.train.push_back({"s" + text(), text(), 1 + static_cast<double>(random() % 99)});
    const std::string yaml = resolved_yaml(config);
    Config again;
    read_settings(again, parse_config(yaml, "resolved.yaml"));
    ASSERT_EQ(flatten(config), flatten(again)) << yaml;
    ASSERT_EQ(config.optimizer.learning_rate, again.optimizer.learning_rate);
    ASSERT_EQ(config.optimizer.clip_norm, again.optimizer.clip_norm);
    ASSERT_EQ(config.name, again.name);
    ASSERT_EQ(config.suffix, again.suffix);
    ASSERT_EQ(config.tags, again.tags);
    ASSERT_EQ(yaml, resolved_yaml(again));
  }
}

TEST(Settings, AreWrittenWithTheirMeaning) {
  Config config;
  config.train = {{"a.en", "a.de", 0.5}, {"b.en", "", 1}};
  EXPECT_EQ(
      "seed: 1  # start of all randomness\n"
      "optimizer:  # the optimiser\n"
      "  learning_rate: 0.0005  # peak rate, reached after warmup\n"
      "  warmup_updates: 4000  # updates from 0 to the peak\n"
      "  clip_norm: 1  # global gradient norm\n"
      "  kind: plain  # which one\n"
      "train:  # training corpora\n"
      "  - source: a.en  # text of one side\n"
      "    # text of the other side, described at such length that the comment can't stand behind "
      "the value\n"
      "    # on one line\n"
      "    target: a.de\n"
      "    weight: 0.5  # copies per epoch\n"
      "  - source: b.en  # text of one side\n"
      "    # text of the other side, described at such length that the comment can't stand behind "
      "the value\n"
      "    # on one line\n"
      "    target: \"\"\n"
      "    weight: 1  # copies per epoch\n"
      "tags: [a]  # words\n"
      "sizes: []  # numbers\n"
      "name: x  # what to call it\n"
      "suffix: none  # what to add to the name\n"
      "max_tokens: auto  # tokens of a micro-batch\n"
      "log:  # progress\n"
      "  every: 100  # updates between lines\n"
      "  live: false  # one line that moves\n"
      "width: 512  # width of the model\n"
      "heads: 8  # heads of attention\n",
      resolved_yaml(config));
}

struct LongFirst {
  std::string path = "p";
  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("path", path, std::string(120, 'h'));
  }
};
struct LongFirstList {
  std::vector<LongFirst> list{{}, {"q"}};
  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("list", list, "elements that begin with a comment");
  }
};

TEST(Settings, OfAnElementMayBeginWithAComment) {
  const TempFolder folder;
  LongFirstList read;
  read.list.clear();
  read_settings(read, folder.write("x.yaml", resolved_yaml(LongFirstList{})));
  ASSERT_EQ(2u, read.list.size());
  EXPECT_EQ("q", read.list[1].path);
}

TEST(Settings, HaveTheirMeaningWrapped) {
  EXPECT_EQ("# \n", wrapped("", "# "));
  EXPECT_EQ("# a b\n", wrapped("a b", "# "));
  const std::string word(60, 'w'), long_word(150, 'l'), full(98, 'f');
  EXPECT_EQ("# " + word + "\n# " + word + " x\n", wrapped(word + " " + word + " x", "# "));
  EXPECT_EQ("# " + long_word + "\n# a\n", wrapped(long_word + " a", "# "));
  EXPECT_EQ("# a\n# " + long_word + "\n", wrapped("a " + long_word, "# "));
  EXPECT_EQ("# " + full + "\n# a\n", wrapped(full + " a", "# "));
}

TEST(Settings, AreListedForHelp) {
  const std::vector<SettingHelp> rows = list_settings<Config>();
  const std::string help = format_help(rows);
  EXPECT_THAT(help, HasSubstr("optimizer.learning_rate = 0.0005\n"
                              "    peak rate, reached after warmup\n"
                              "    a number, between 0 and 1, ends excluded\n"));
  EXPECT_THAT(help, HasSubstr("train = []\n    training corpora\n    a list of sections\n"));
  EXPECT_THAT(help, HasSubstr("train[].source = (required)\n"));
  EXPECT_THAT(help, HasSubstr("max_tokens = auto\n    tokens of a micro-batch\n"
                              "    an integer, at least 1, or auto; may change on resume\n"));
  EXPECT_THAT(help, HasSubstr("updates between lines\n    an integer, at least 1; may change"));
}

TEST(Settings, ThatAreFixedMayNotDiffer) {
  Config before;
  before.train = {{"a", "b", 1}};
  Config now = before;
  now.log.every = 5;
  now.log.live = true;
  now.max_tokens = 7;
  now.train[0].weight = 3;
  EXPECT_TRUE(fixed_differences(flatten(before), flatten(now)).empty());
  now.width = 256;
  now.train[0].target = "c";
  now.train.push_back({"d", "e", 1});
  const auto differences = fixed_differences(flatten(before), flatten(now));
  ASSERT_EQ(4u, differences.size());
  EXPECT_EQ("train[0].target", differences[0].key);
  EXPECT_EQ("b", differences[0].before);
  EXPECT_EQ("c", differences[0].now);
  EXPECT_EQ("train[1].source", differences[1].key);
  EXPECT_EQ("(absent)", differences[1].before);
  EXPECT_EQ("width", differences[3].key);
  const auto back = fixed_differences(flatten(now), flatten(before));
  ASSERT_EQ(4u, back.size());
  EXPECT_EQ("train[1].target", back[3].key);
  EXPECT_EQ("(absent)", back[3].now);
}

struct BadDefault {
  int size = 0;
  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("size", size, "a size", v.at_least(1));
  }
};

TEST(Settings, WithADefaultThatBreaksItsRuleAreAFault) {
  const TempFolder folder;
  BadDefault bad;
  EXPECT_THROW(read_settings(bad, folder.write("x.yaml", "")), InternalError);
}

TEST(Settings, OfAMissingFile) {
  Config config;
  EXPECT_THAT(message_of<UserError>([&] { read_settings(config, "nowhere/x.yaml"); }),
              HasSubstr("nowhere/x.yaml: No such file"));
}

}  // namespace
}  // namespace octavo
