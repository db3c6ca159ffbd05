#include "launch/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "core/error.h"
#include "core/log.h"
#include "tests/testkit/child.h"

namespace octavo {
namespace {

using testing::HasSubstr;
using testkit::message_of;
using Arguments = std::vector<std::string>;

struct Given {
  std::string text;
  int beam = 0;
  std::vector<std::string> sets;
};

std::vector<Command> commands(Given& given) {
  Command c;
  c.name = "translate";
  c.summary = "translate text";
  c.usage = "RUN [options]";
  c.options.add_options()("run", po::value(&given.text)->required()->value_name("RUN"), "a run")(
      "beam", po::value(&given.beam)->default_value(4)->value_name("K"), "hypotheses kept")(
      "set", po::value(&given.sets)->value_name("NAME=VALUE"), "a setting");
  c.positional.add("run", 1);
  c.more_help = [] { return std::string("more of it\n"); };
  c.run = [](const po::variables_map&) { return 7; };
  return {c};
}

std::string refusal(const Arguments& arguments) {
  Given given;
  return message_of<UserError>([&] { run_command_line(arguments, commands(given)); });
}

TEST(Command, GetsItsOptions) {
  Given given;
  EXPECT_EQ(7, run_command_line(Arguments{"translate", "runs/a", "--beam", "2", "--set", "a.b=c=d",
                                          "--set=e=-1"},
                                commands(given)));
  EXPECT_EQ("runs/a", given.text);
  EXPECT_EQ(2, given.beam);
  EXPECT_EQ((Arguments{"a.b=c=d", "e=-1"}), given.sets);
  EXPECT_EQ(7, run_command_line(Arguments{"translate", "--", "--odd-name"}, commands(given)));
  EXPECT_EQ("--odd-name", given.text);
  EXPECT_EQ(4, given.beam);
}

TEST(Command, AFamilyHasCommandsOfItsOwn) {
  Given given;
  Command family;
  family.name = "model";
  family.summary = "what is done to a model";
  family.usage = "NAME [options]";
  family.subcommands = commands(given);
  family.subcommands.front().name = "model translate";
  family.subcommands.front().one_dash = true;
  const auto run = [&](const Arguments& arguments) {
    return run_command_line(arguments, std::span(&family, 1));
  };
  const auto refused = [&](const Arguments& arguments) {
    return message_of<UserError>([&] { run(arguments); });
  };
  EXPECT_EQ(7, run({"model", "translate", "runs/a", "-beam", "2"}));
  EXPECT_EQ(2, given.beam);
  testing::internal::CaptureStdout();
  EXPECT_EQ(0, run({"model", "--help"}));
  EXPECT_EQ(
      "usage: octavo model NAME [options]\nwhat is done to a model\n\n"
      "  model translate  translate text\n\n'octavo model NAME --help' explains one.\n",
      testing::internal::GetCapturedStdout());
  EXPECT_EQ("no name given; 'octavo model --help' lists them", refused({"model"}));
  EXPECT_EQ(
      "no command 'model transalte'; did you mean 'translate'? 'octavo model --help' lists "
      "them.",
      refused({"model", "transalte"}));
}

TEST(Command, RefusesWhatDoesNotParse) {
  EXPECT_EQ("RUN is missing; usage: octavo translate RUN [options]", refusal({"translate"}));
  EXPECT_EQ("unexpected argument 'b'; usage: octavo translate RUN [options]",
            refusal({"translate", "a", "b", "c"}));
  EXPECT_THAT(refusal({"translate", "a", "--beam", "two"}),
              testing::AllOf(HasSubstr("'two'"), HasSubstr("--beam"),
                             HasSubstr("'octavo translate --help'")));
  EXPECT_THAT(refusal({"translate", "a", "--beam"}), HasSubstr("--beam"));
  EXPECT_EQ("no option '--bean'; did you mean '--beam'? 'octavo translate --help' lists them.",
            refusal({"translate", "a", "--bean=3"}));
  EXPECT_EQ("no option '--colour'; 'octavo translate --help' lists them.",
            refusal({"translate", "a", "--colour"}));
  EXPECT_THAT(refusal({"translate", "a", "--bea", "3"}), HasSubstr("no option '--bea'"));
  EXPECT_THAT(refusal({"translate", "a", "-b"}), HasSubstr("no option '-b'"));
  EXPECT_THAT(refusal({"translate", "a", "--beam=1", "--beam=2"}), HasSubstr("--beam"));
}

TEST(Command, ExplainsItself) {
  Given given;
  testing::internal::CaptureStdout();
  EXPECT_EQ(0, run_command_line(Arguments{"translate", "--help"}, commands(given)));
  EXPECT_EQ(
      "usage: octavo translate RUN [options]\n"
      "translate text\n\n"
      "  RUN               a run\n"
      "  --beam K (=4)     hypotheses kept\n"
      "  --set NAME=VALUE  a setting\n"
      "  --help            this text\n"
      "\nmore of it\n",
      testing::internal::GetCapturedStdout());
}

TEST(ExitCode, TellsWhoseFaultItWas) {
  const auto fails = [](auto exception) { return exit_code_of([&]() -> int { throw exception; }); };
  set_up_log(0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(5, exit_code_of([] { return 5; }));
  EXPECT_EQ(2, fails(UserError("mend it")));
  EXPECT_EQ(3, fails(DeviceError("no device")));
  EXPECT_EQ(3, fails(std::bad_alloc()));
  EXPECT_EQ(4, fails(InternalError("wrong shape")));
  EXPECT_EQ(4, fails(std::runtime_error("from a library")));
  EXPECT_EQ(4, fails(1));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("mend it"));
  EXPECT_THAT(said, HasSubstr("no device"));
  EXPECT_THAT(said, HasSubstr("out of memory"));
  EXPECT_THAT(said, HasSubstr("wrong shape. This is a fault of octavo"));
  EXPECT_THAT(said, HasSubstr("from a library. This is a fault of octavo"));
  EXPECT_THAT(said, HasSubstr("something unknown"));
}

}  // namespace
}  // namespace octavo
