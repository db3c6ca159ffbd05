#include "configs/experiment.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "core/file.h"
#include "tests/testkit/child.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

/// By name: users keep files of their own in configs/.
std::vector<fs::path> shipped() {
  std::vector<fs::path> files;
  for (const char* name : {"quickstart-en-de", "quickstart-en-fr", "reverse", "wmt14-en-de-base",
                           "wmt14-en-de-big", "wmt14-en-fr-base", "wmt14-en-fr-big"}) {
    files.push_back(fs::path(OCTAVO_SOURCE_DIR) / "configs" / (std::string(name) + ".yaml"));
  }
  return files;
}

TEST(Experiment, EveryShippedFileIsReadAndWrittenBack) {
  const testkit::TempFolder folder;
  for (const fs::path& file : shipped()) {
    const Experiment experiment = read_experiment(file, {});
    const fs::path copy = folder.path() / file.filename();
    write_file(copy, resolved_yaml(experiment));
    EXPECT_EQ(resolved_yaml(read_experiment(copy, {})), resolved_yaml(experiment)) << file;
  }
}

TEST(Experiment, EverySettingInShippedFilesIsCommented) {
  for (const fs::path& file : shipped()) {
    std::istringstream lines(read_file(file));
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (line.starts_with("#")) continue;
      EXPECT_NE(line.find("# "), std::string::npos) << file << ":" << number << ": " << line;
    }
  }
}

TEST(Experiment, OverridesAreCheckedAsTheFileIs) {
  const fs::path file = shipped().front();
  const auto error = [&](const std::string& assignment) {
    const std::vector<std::string> overrides{assignment};
    return testkit::message_of<UserError>([&] { read_experiment(file, overrides); });
  };
  EXPECT_NE(error("trainer.max_update=5").find("did you mean 'max_updates'?"), std::string::npos)
      << error("trainer.max_update=5");
  EXPECT_NE(error("data.subwords.joint=false").find("model.share_embeddings"), std::string::npos);
  EXPECT_NE(error("data.max_length=5000").find("model.max_positions"), std::string::npos);
  EXPECT_NE(error("model.heads=7").find("model.heads is 7; it must divide model.width"),
            std::string::npos)
      << error("model.heads=7");
}

TEST(Experiment, OnlyWhatMayChangeMayChangeOnResume) {
  const fs::path file = fs::path(OCTAVO_SOURCE_DIR) / "configs" / "reverse.yaml";
  const std::string saved = resolved_yaml(read_experiment(file, {}));
  const auto error = [&](const std::vector<std::string>& overrides) {
    const Experiment now = read_experiment(file, overrides);
    return testkit::message_of<UserError>([&] { check_resumable(now, saved, "runs/x/step"); });
  };
  EXPECT_EQ("nothing thrown",
            error({"trainer.max_updates=9", "trainer.max_tokens=512", "trainer.report_every=3",
                   "trainer.recompute=layer", "comm.timeout_seconds=5", "translate.beam=2"}));
  const std::string refused = error({"model.width=128", "trainer.seed=2"});
  EXPECT_NE(refused.find("model.width was 64, is 128"), std::string::npos) << refused;
  EXPECT_NE(refused.find("trainer.seed was 1, is 2"), std::string::npos) << refused;
}

TEST(Experiment, TheDocumentedExamplesAreRead) {
  const std::string page = read_file(fs::path(OCTAVO_SOURCE_DIR) / "docs" / "settings.md");
  const std::string fence = "```yaml\n";
  const std::size_t begin = page.find(fence) + fence.size();
  const testkit::TempFolder folder;
  const fs::path file =
      folder.write("mine.yaml", page.substr(begin, page.find("```", begin) - begin));
  std::vector<std::string> overrides;
  const std::regex set("`--set '?([^`']+)'?`");
  for (std::sregex_iterator found(page.begin(), page.end(), set), end; found != end; ++found) {
    overrides.push_back((*found)[1]);
  }
  ASSERT_EQ(overrides.size(), 3U);
  const Experiment read = read_experiment(file, overrides);
  EXPECT_EQ(read.trainer.schedule.peak_rate, 1e-3);
  EXPECT_EQ(read.data.train.at(0).target, "a.de");
  EXPECT_EQ(read.data.train.at(0).weight, 2);
  for (const char* wrong : {"trainer.schedule.warmup_update=1", "trainer.label_smoothing=7"}) {
    const std::vector<std::string> one{wrong};
    std::string said = testkit::message_of<UserError>([&] { read_experiment(file, one); });
    said = said.substr(said.find(": ") + 2);  // the page shows a file where this is --set
    EXPECT_NE(page.find(said), std::string::npos) << said;
  }
}

TEST(Experiment, TheDocumentedTableSaysWhatMayChangeOnResume) {
  const std::string page = read_file(fs::path(OCTAVO_SOURCE_DIR) / "docs" / "settings.md");
  std::istringstream table(page.substr(page.find("| what | may change on resume |")));
  std::set<std::string> documented, actual;
  const std::regex name("`([a-z_.\\[\\]]+)`");
  for (std::string line; std::getline(table, line) && line.starts_with("|");) {
    for (std::sregex_iterator found(line.begin(), line.end(), name), end; found != end; ++found) {
      documented.insert((*found)[1]);
    }
  }
  for (const SettingHelp& setting : list_settings<Experiment>()) {
    if (setting.may_change) actual.insert(setting.key);
  }
  EXPECT_EQ(documented, actual);
}

}  // namespace
}  // namespace octavo
