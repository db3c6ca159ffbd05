#include "tests/end_to_end/experiment_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/file.h"
#include "core/philox.h"

namespace octavo::testkit {

namespace {

constexpr const char* kConfig = R"(
data:
  prepared: {0}/{2}
  train:
    - source: {0}/{1}.source
      target: {0}/{1}.target
  dev:
    source: {0}/dev.source
    target: {0}/dev.target
  subwords:
    {3}
  max_length: 120
  max_ratio: none
model:
  width: 48
  hidden: 96
  heads: 3
  encoder_layers: 2
  decoder_layers: 2
  max_positions: 128
  dropout: 0.1
  attention_dropout: 0.1
  activation_dropout: 0.1
trainer:
  output: {0}/run
  tokens_per_update: 1400
  max_updates: 50
  schedule:
    kind: inverse_sqrt
    peak_rate: 0.001
    warmup_updates: 5
  report_every: 1
)";

/// A word that looks like one: two or three syllables.
std::string word(std::uint64_t number) {
  static constexpr const char* kSyllables[] = {"ba", "du", "ki", "lo", "ne", "ra", "su", "ti"};
  std::string out;
  for (std::uint64_t n = number + 8; n > 0; n /= 8) out += kSyllables[n % 8];
  return out;
}

void append_settings(std::vector<std::string>& arguments,
                     const std::vector<std::string>& settings) {
  for (const std::string& s : settings) {
    arguments.emplace_back("--set");
    arguments.push_back(s);
  }
}

}  // namespace

void expect_user_error(const ProgramResult& result, const std::vector<std::string>& parts) {
  using testing::HasSubstr;
  using testing::Not;
  EXPECT_EQ(result.exit_code, 2) << result.err;
  std::size_t errors = 0;
  std::istringstream lines(result.err);
  for (std::string line; std::getline(lines, line);) errors += line.starts_with("error: ");
  EXPECT_EQ(errors, 1U) << result.err;
  for (const std::string& part : parts) EXPECT_THAT(result.err, HasSubstr(part));
  EXPECT_THAT(result.err, Not(HasSubstr("exception")));
  EXPECT_THAT(result.err, Not(HasSubstr("fault of octavo")));
}

ExperimentFolder::ExperimentFolder(int longest) {
  write_text("train", 3000, longest, 1);
  write_text("dev", 40, longest, 2);
  write_and_prepare(config(), "train", "prepared", "vocabulary_size: 400");
}

std::string ExperimentFolder::other_experiment(const std::string& name, std::uint64_t seed,
                                               const std::string& subwords) const {
  write_text(name, 1000, 40, seed);
  write_and_prepare(path(name + ".yaml"), name, name + "_prepared", subwords);
  return path(name + ".yaml");
}

void ExperimentFolder::write_and_prepare(const std::string& config, const std::string& text,
                                         const std::string& prepared,
                                         const std::string& subwords) const {
  write_file(config, fmt::format(kConfig, folder_.path().string(), text, prepared, subwords));
  const ProgramResult result = octavo({"prepare", config, "--threads", "1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

void ExperimentFolder::write_text(const std::string& name, int lines, int longest,
                                  std::uint64_t seed) const {
  RandomStream random(seed);
  std::string source, target;
  for (int line = 0; line < lines; ++line) {
    // Half of the lines are short: lengths are very unequal.
    const std::uint64_t most = line % 2 == 0 ? 4 : static_cast<std::uint64_t>(longest);
    const std::uint64_t words = 1 + random.below(most);
    for (std::uint64_t i = 0; i < words; ++i) {
      const std::uint64_t r = random.below(60);
      source += (i > 0 ? " " : "") + word(r * r / 60);  // some words are frequent
      target += (i > 0 ? " " : "") + word(100 + r * r / 60);
    }
    source += '\n';
    target += '\n';
  }
  write_file(path(name + ".source"), source);
  write_file(path(name + ".target"), target);
}

std::vector<std::string> ExperimentFolder::tiny_model() {
  return {"model.width=16", "model.hidden=32", "model.heads=2", "model.encoder_layers=1",
          "model.decoder_layers=1"};
}

std::vector<std::string> ExperimentFolder::output_arguments(
    const std::string& run, const std::vector<std::string>& settings) const {
  std::vector<std::string> arguments{"--progress", "plain", "--set", "trainer.output=" + path(run)};
  append_settings(arguments, settings);
  return arguments;
}

std::vector<std::string> ExperimentFolder::train_arguments(const std::string& run,
                                                           const std::vector<std::string>& settings,
                                                           int threads,
                                                           const std::string& other) const {
  std::vector<std::string> arguments{OCTAVO_PROGRAM, "train", other.empty() ? config() : other,
                                     "--threads", std::to_string(threads)};
  const std::vector<std::string> more = output_arguments(run, settings);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

ProgramResult ExperimentFolder::train(const std::string& run,
                                      const std::vector<std::string>& settings, int threads,
                                      const std::string& config) const {
  return run_program(train_arguments(run, settings, threads, config));
}

std::vector<std::string> ExperimentFolder::prepare_arguments(
    const std::vector<std::string>& settings) const {
  std::vector<std::string> arguments{OCTAVO_PROGRAM, "prepare", config(), "--threads", "1"};
  append_settings(arguments, settings);
  return arguments;
}

ProgramResult ExperimentFolder::prepare(const std::vector<std::string>& settings) const {
  return run_program(prepare_arguments(settings));
}

ProgramResult ExperimentFolder::train_ranks(const std::string& run,
                                            const std::vector<std::string>& settings, int ranks,
                                            int threads, const char* program) const {
  setenv("OCTAVO", program, 1);
  return run_program(train_ranks_arguments(run, settings, ranks, threads));
}

std::vector<std::string> ExperimentFolder::train_ranks_arguments(
    const std::string& run, const std::vector<std::string>& settings, int ranks,
    int threads) const {
  std::vector<std::string> arguments{std::string(OCTAVO_SOURCE_DIR) + "/launch/train.sh",
                                     config(),
                                     "--ranks",
                                     std::to_string(ranks),
                                     "--threads",
                                     std::to_string(threads)};
  const std::vector<std::string> more = output_arguments(run, settings);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

ProgramResult ExperimentFolder::octavo(const std::vector<std::string>& arguments,
                                       const std::string& input) {
  std::vector<std::string> all{OCTAVO_PROGRAM};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_program(all, input);
}

std::vector<UpdateRecord> ExperimentFolder::records(const std::string& run) const {
  std::vector<UpdateRecord> records;
  std::istringstream lines(read_file(path(run) + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json record = nlohmann::json::parse(line);
    if (!record.contains("gradient_norm")) continue;  // a validation
    records.push_back({.loss = record.at("loss"), .norm = record.at("gradient_norm")});
  }
  return records;
}

std::vector<std::string> ExperimentFolder::metrics(const std::string& run) const {
  std::vector<std::string> all;
  std::istringstream lines(read_file(path(run) + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json record = nlohmann::json::parse(line);
    for (const char* key :
         {"time", "seconds", "source_tokens_per_second", "target_tokens_per_second",
          "tokens_per_second", "sentences_per_second", "updates_per_second", "data_wait",
          "collective_wait", "flop_utilisation"}) {
      record.erase(key);
    }
    all.push_back(record.dump());
  }
  return all;
}

std::string ExperimentFolder::weights(const std::string& run, std::int64_t update) const {
  const std::string folder = path(run) + fmt::format("/checkpoints/step_{:08}/", update);
  std::string all;
  for (const char* file : {"weights", "optimizer", "ema"}) {
    const std::string name = folder + file + ".safetensors";
    if (std::filesystem::exists(name)) all += read_file(name);
  }
  return all;
}

}  // namespace octavo::testkit
