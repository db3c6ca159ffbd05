#include "core/config_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/error.h"
#include "tests/testkit/child.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testkit::message_of;

std::string refusal(const std::string& yaml) {
  return message_of<UserError>([&] { parse_config(yaml, "x.yaml"); });
}

TEST(ConfigTree, KeepsWhatWasWritten) {
  const ConfigNode root = parse_config(
      "a: 010  # a comment\n"
      "b:\n"
      "  c: 'no'\n"
      "  d: [no, 1e5]\n"
      "e:\n"
      "f: |\n"
      "  two\n"
      "  lines\n",
      "x.yaml");
  EXPECT_EQ("010", root.find("a")->text);
  EXPECT_EQ("x.yaml:1", root.find("a")->origin);
  const ConfigNode* b = root.find("b");
  EXPECT_EQ("x.yaml:2", b->origin);
  EXPECT_TRUE(b->find("c")->quoted);
  EXPECT_EQ("no", b->find("c")->text);
  EXPECT_EQ("x.yaml:3", b->find("c")->origin);
  ASSERT_EQ(2u, b->find("d")->children.size());
  EXPECT_EQ("1e5", b->find("d")->children[1].text);
  EXPECT_FALSE(b->find("d")->children[0].quoted);
  EXPECT_EQ(ConfigNode::Kind::null, root.find("e")->kind);
  EXPECT_EQ("two\nlines\n", root.find("f")->text);
  EXPECT_EQ(nullptr, root.find("g"));
  EXPECT_EQ(nullptr, root.find("a")->find("b"));
}

TEST(ConfigTree, EmptyFilesAreEmpty) {
  for (const char* text : {"", "\n", "# only a comment\n", "---\n", "--- # and nothing\n...\n"})
    EXPECT_EQ(ConfigNode::Kind::null, parse_config(text, "x.yaml").kind) << text;
}

TEST(ConfigTree, RefusesRepeatedKeys) {
  EXPECT_EQ("x.yaml:3: a is set a second time, first at x.yaml:1; keep one",
            refusal("a: 1\nb: 2\na: 1\n"));
  EXPECT_EQ("x.yaml:4: s.t.a is set a second time, first at x.yaml:3; keep one",
            refusal("s:\n  t:\n    a: 1\n    a: 2\n"));
  EXPECT_EQ("x.yaml:1: l.a is set a second time, first at x.yaml:1; keep one",
            refusal("l: [{b: 1}, {a: 1, 'a': 2}]\n"));
}

TEST(ConfigTree, RefusesWhatItDoesNotRead) {
  EXPECT_EQ("x.yaml:1: anchors ('&name') are not read; write the value out", refusal("a: &x 1"));
  EXPECT_EQ("x.yaml:1: anchors ('&name') are not read; write the value out",
            refusal("a: &x\n  b: 1\nc: *x\n"));
  EXPECT_THAT(refusal("a: !!str 1"), StartsWith("x.yaml:1: the tag "));
  EXPECT_THAT(refusal("a: 1\n---\nb: 1\n"), HasSubstr("second document"));
  EXPECT_EQ("x.yaml:1: a key must be a plain name", refusal("[a, b]: 1"));
  EXPECT_EQ("x.yaml:1: a key is missing before ':'", refusal("~: 1"));
  EXPECT_EQ("x.yaml:1: expected 'name: value' lines", refusal("just text"));
  EXPECT_EQ("x.yaml:2: expected 'name: value' lines", refusal("\n- a\n"));
  EXPECT_THAT(refusal(std::string("a: 1\nb: x\0y\n", 12)), StartsWith("x.yaml:2: a NUL byte"));
}

TEST(ConfigTree, TellsTheLineOfBadYaml) {
  EXPECT_THAT(refusal("a: 1\nb: [1, 2\n"), StartsWith("x.yaml:"));
  EXPECT_THAT(refusal("a: 1\nb: [1, 2\n"), HasSubstr("not valid YAML"));
  EXPECT_THAT(refusal("a: 1\n b: 2\n"), StartsWith("x.yaml:2: not valid YAML: "));
  EXPECT_THAT(refusal("a: *nowhere\n"), StartsWith("x.yaml:1: not valid YAML: "));
  EXPECT_EQ("x.yaml:2: not valid UTF-8; save the file as UTF-8", refusal("a: 1\nb: \xff\n"));
  for (const char* text : {"a: \"b", "a: \"b\n", "a: 'b\nc: 1\n\n", "a: [\"b]\n"})
    EXPECT_THAT(refusal(text), HasSubstr("a quotation mark before it is never closed")) << text;
}

TEST(ConfigTree, SetsValues) {
  ConfigNode root = parse_config("a:\n  b: 1\n  c: 2\n", "x.yaml");
  set_value(root, "a.b=3");
  EXPECT_EQ("3", root.find("a")->find("b")->text);
  EXPECT_EQ("--set a.b=3", root.find("a")->find("b")->origin);
  EXPECT_EQ("2", root.find("a")->find("c")->text);
  set_value(root, "d.e.f=[x, y=z]");
  EXPECT_EQ("y=z", root.find("d")->find("e")->find("f")->children[1].text);
  set_value(root, "d.e.f='last: one counts'");
  EXPECT_EQ("last: one counts", root.find("d")->find("e")->find("f")->text);
  set_value(root, "g=");
  EXPECT_EQ(ConfigNode::Kind::null, root.find("g")->kind);
  EXPECT_EQ("--set g=", root.find("g")->origin);
  ConfigNode lists = parse_config("t: [{w: 1}, {w: 2}]\n", "x.yaml");
  set_value(lists, "t[1].w=3");
  EXPECT_EQ("1", lists.find("t")->children[0].find("w")->text);
  EXPECT_EQ("3", lists.find("t")->children[1].find("w")->text);
  ConfigNode empty = parse_config("", "x.yaml");
  set_value(empty, "a=1");
  EXPECT_EQ("1", empty.find("a")->text);
}

TEST(ConfigTree, RefusesBadAssignments) {
  const auto refused = [](const std::string& assignment) {
    ConfigNode root = parse_config("a:\n  b: 1\n", "x.yaml");
    return message_of<UserError>([&] { set_value(root, assignment); });
  };
  EXPECT_EQ("--set a.b: write NAME=VALUE, e.g. --set trainer.max_updates=1000", refused("a.b"));
  EXPECT_THAT(refused("=1"), HasSubstr("write NAME=VALUE"));
  EXPECT_EQ("--set a=\xEF\xBF\xBD: not valid UTF-8", refused("a=\xff"));
  EXPECT_THAT(refused("a=\"x\\0y\""), HasSubstr("a NUL (\\0) can stand in no setting"));
  EXPECT_THAT(refused("a=\"x"), HasSubstr("never closed"));
  for (const char* element :
       {"l[2].b=1", "l[-1].b=1", "l[0.b=1", "l[].b=1", "a[0].b=1", "x[0]=1"}) {
    ConfigNode root = parse_config("a: {b: 1}\nl: [{b: 1}, {b: 2}]\n", "x.yaml");
    EXPECT_THAT(message_of<UserError>([&] { set_value(root, element); }),
                HasSubstr("has no list element "))
        << element;
  }
  EXPECT_EQ("--set a={b: 2}: a section can't be set as a whole; set its settings one by one",
            refused("a={b: 2}"));
  EXPECT_EQ("--set a.b.c=1: a.b is not a section (x.yaml:2)", refused("a.b.c=1"));
  EXPECT_THAT(refused("a.b='1"), StartsWith("--set a.b='1: not valid YAML"));
  EXPECT_THAT(refused("a.b=&x 1"), StartsWith("--set a.b=&x 1: anchors"));
}

// Whatever bytes come in: a tree or a UserError, nothing else.
TEST(ConfigTree, SurvivesNoise) {
  const std::string good =
      "optimizer:\n  learning_rate: 5e-4\n  list: [a, 'b', \"c\\n\"]\ntrain:\n  - {x: 1}\n  - y: "
      "|\n"
      "      text\n    ? k\n    : v\n";
  std::mt19937 random(3);
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (std::size_t n = 1 + random() % 4; n > 0; --n) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = "{}[]:,-?&*!|>'\"%@` \n\t#ax0\\"[random() % 27];
          break;
        case 1:
          text.erase(at, random() % 8);
          break;
        default:
          text.insert(at, good, random() % good.size(), random() % 12);
      }
      if (text.empty()) break;
    }
    refused += refusal(text) != "nothing thrown";
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 19'000);
}

}  // namespace
}  // namespace octavo
