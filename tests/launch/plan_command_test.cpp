// octavo plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testkit/program.h"

namespace octavo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testkit::ProgramResult;

ProgramResult plan(const std::string& config, std::vector<std::string> options) {
  options.insert(options.begin(),
                 {OCTAVO_PROGRAM, "plan", std::string(OCTAVO_SOURCE_DIR) + "/configs/" + config});
  return testkit::run_program(options);
}

TEST(PlanCommand, KnowsSizesAndWorkWithoutAnyText) {
  const ProgramResult r = plan("wmt14-en-de-base.yaml", {"--set", "data.prepared=/nowhere/at/all"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  // Vaswani et al. say 65 million for a vocabulary of about 37,000: no bias on the output.
  EXPECT_THAT(r.out, AllOf(HasSubstr("63,"), HasSubstr(" parameters; vocabularies of 37,000"),
                           HasSubstr("not prepared: "), HasSubstr("/nowhere/at/all"),
                           HasSubstr("100,000 updates"), HasSubstr("FLOP")));
}

TEST(PlanCommand, SharesMemoryAmongRanks) {
  const auto budget = [](const std::string& ranks) {
    const ProgramResult r = plan("reverse.yaml", {"--ranks", ranks});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    const std::size_t at = r.out.find("may be used");
    return std::stod(r.out.substr(at + std::string("may be used").size()));
  };
  EXPECT_NEAR(budget("1") / budget("4"), 4, 0.4);
}

TEST(PlanCommand, RefusesWhatDoesNotFit) {
  const ProgramResult r = plan("wmt14-en-de-big.yaml", {"--set", "trainer.memory_gigabytes=3"});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.err, AllOf(HasSubstr("parameters 2.14"), HasSubstr("3 GB may be used")));
  EXPECT_EQ(plan("reverse.yaml", {"--ranks", "0"}).exit_code, 2);
}

}  // namespace
}  // namespace octavo
