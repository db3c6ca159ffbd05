// What training takes against what was planned, by what the system counts.
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/philox.h"
#include "tests/end_to_end/experiment_folder.h"

namespace octavo {
namespace {

using testkit::ExperimentFolder;
using testkit::ProgramResult;
using testkit::TempFolder;

/// Long lines of words from a large dictionary of random letters: enough for 37,000 subwords.
std::string long_lines(int lines, int words) {
  constexpr std::uint64_t kDictionary = 60'000;
  RandomStream random(1);
  std::vector<std::string> dictionary;
  for (std::uint64_t i = 0; i < kDictionary; ++i) {
    std::string& word = dictionary.emplace_back();
    for (std::uint64_t letters = 3 + random.below(5); letters > 0; --letters) {
      word += static_cast<char>('a' + random.below(26));
    }
  }
  std::string text;
  for (int line = 0; line < lines; ++line) {
    for (int i = 0; i < words; ++i) {
      text += (i > 0 ? " " : "") + dictionary[static_cast<std::size_t>(random.below(kDictionary))];
    }
    text += '\n';
  }
  return text;
}

/// The shipped experiment with its text and its run in `folder`.
std::string base_experiment(const TempFolder& folder) {
  std::string yaml = read_file(std::string(OCTAVO_SOURCE_DIR) + "/configs/wmt14-en-de-base.yaml");
  const std::string path = folder.path().string();
  yaml = std::regex_replace(yaml, std::regex("(out|runs)/wmt14-en-de[^/ ]*"), path + "/$1");
  const std::string text = long_lines(900, 100), held_out = long_lines(40, 100);
  std::filesystem::create_directories(folder / "out/text");
  for (const char* side : {"en", "de"}) {
    write_file(folder / "out/text" / (std::string("train.") + side), text);
    write_file(folder / "out/text" / (std::string("dev.") + side), held_out);
  }
  write_file(folder / "base.yaml", yaml);
  return folder / "base.yaml";
}

/// Bytes that the log's first line says each rank takes.
double planned_bytes(const std::string& log) {
  std::smatch found;
  EXPECT_TRUE(std::regex_search(log, found, std::regex("each takes ([0-9.]+) GB"))) << log;
  return found.empty() ? 0 : std::stod(found[1]) * 1e9;
}

TEST(Memory, BaseTakesWhatWasPlannedAndLessThan4GiB) {
  const TempFolder folder;
  const std::string config = base_experiment(folder);
  const ProgramResult prepared = ExperimentFolder::octavo({"prepare", config});
  ASSERT_EQ(prepared.exit_code, 0) << prepared.err;
  // Updates of three micro-batches of almost 4,096 tokens.
  const ProgramResult trained = ExperimentFolder::octavo(
      {"train", config, "--progress", "plain", "--set", "trainer.max_tokens=4096", "--set",
       "trainer.tokens_per_update=11900", "--set", "trainer.max_updates=1", "--set",
       "trainer.validation.every_updates=none"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.err.find("micro-batches of 4096"), std::string::npos) << trained.err;
  const double planned = planned_bytes(trained.err);
  RecordProperty("planned_bytes", std::to_string(planned));
  RecordProperty("measured_bytes", std::to_string(trained.peak_bytes));
  EXPECT_NEAR(static_cast<double>(trained.peak_bytes) / planned, 1.0, 0.1);
  EXPECT_LT(trained.peak_bytes, std::int64_t{4} << 30);

  // In float32, with all that validation takes beside.
  const ProgramResult validated = ExperimentFolder::octavo(
      {"train", config, "--progress", "plain", "--set",
       "trainer.output=" + (folder / "f32").string(), "--set", "trainer.precision=float32", "--set",
       "trainer.max_tokens=4096", "--set", "trainer.tokens_per_update=4000", "--set",
       "trainer.max_updates=1", "--set", "trainer.validation.bleu_sentences=4", "--set",
       "translate.max_length=20"});
  ASSERT_EQ(validated.exit_code, 0) << validated.err;
  EXPECT_NE(validated.err.find("[validation]"), std::string::npos) << validated.err;
  RecordProperty("measured_bytes_float32_validated", std::to_string(validated.peak_bytes));
  EXPECT_LT(static_cast<double>(validated.peak_bytes), 1.1 * planned_bytes(validated.err));
  EXPECT_LT(validated.peak_bytes, std::int64_t{4} << 30);
}

TEST(Memory, DoesNotGrow) {
  const ExperimentFolder folder(40);
  const auto peak = [&](const std::string& run, const std::string& updates) {
    const ProgramResult result = folder.train(
        run, {"trainer.max_updates=" + updates, "trainer.tokens_per_update=300",
              "trainer.validation.every_updates=100", "trainer.validation.bleu_sentences=5"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return static_cast<double>(result.peak_bytes);
  };
  const double early = peak("early", "200"), late = peak("late", "1200");
  RecordProperty("bytes_after_200_updates", std::to_string(early));
  RecordProperty("bytes_after_1200_updates", std::to_string(late));
  EXPECT_LT(late - early, 2e6);
}

}  // namespace
}  // namespace octavo
