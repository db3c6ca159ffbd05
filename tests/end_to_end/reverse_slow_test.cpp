// The toy with a known answer, from text to BLEU, through the program and its scripts.
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/file.h"
#include "tests/testkit/program.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

using testkit::ProgramResult;
using testkit::run_shell;

TEST(Reverse, UnseenStringsAreReversed) {
  const testkit::TempFolder folder;
  const std::string source = OCTAVO_SOURCE_DIR, program = OCTAVO_PROGRAM;
  const std::string in = "cd " + folder.path().string() + " && OCTAVO=" + program + " ";
  const ProgramResult text = run_shell(in + source + "/launch/make_reverse_text.sh out/reverse");
  ASSERT_EQ(text.exit_code, 0) << text.err;
  const std::string config = source + "/configs/reverse.yaml";
  const ProgramResult prepared = run_shell(in + program + " prepare " + config);
  ASSERT_EQ(prepared.exit_code, 0) << prepared.err;
  const ProgramResult trained = run_shell(in + source + "/launch/train.sh " + config);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const ProgramResult translated =
      run_shell(in + program + " translate runs/reverse < out/reverse/test.source > hypotheses");
  ASSERT_EQ(translated.exit_code, 0) << translated.err;
  const ProgramResult score = run_shell(
      in + program + " evaluate --reference out/reverse/test.target --tokenize none < hypotheses");
  ASSERT_EQ(score.exit_code, 0) << score.err;
  const std::size_t equals = score.out.find(" = ");
  ASSERT_NE(equals, std::string::npos) << score.out;
  EXPECT_GE(std::atof(score.out.c_str() + equals + 3), 99.0) << score.out << trained.err;
}

}  // namespace
}  // namespace octavo
