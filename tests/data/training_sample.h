#pragma once

#include <filesystem>
#include <string>

#include "core/lines.h"
#include "data/prepare.h"
#include "data/prepared.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {

/// Two small prepared corpora of real text, the second with weight 1.5, and a held-out one.
class TrainingSample {
 public:
  TrainingSample() {
    config.prepared = (folder / "prepared").string();
    config.train = {{.source = copy("train.en", 0, 300), .target = copy("train.de", 0, 300)},
                    {.source = copy("train.en", 300, 400),
                     .target = copy("train.de", 300, 400),
                     .weight = 1.5}};
    config.dev = {.source = copy("dev.en", 0, 60), .target = copy("dev.de", 0, 60)};
    config.subwords.vocabulary_size = 700;
    config.subwords.sample = 0.1;  // so that the text is kept
    prepare(config, 1);
    data = std::make_unique<PreparedData>(open_prepared(config));
  }

  TrainingData training(std::optional<double> sample) const {
    TrainingData training = training_data(*data, config);
    training.sample = sample;
    return training;
  }

  testkit::TempFolder folder;
  DataConfig config;
  std::unique_ptr<PreparedData> data;

 private:
  std::string copy(const std::string& name, std::size_t begin, std::size_t end) const {
    const auto lines = read_lines(std::filesystem::path(OCTAVO_SOURCE_DIR) /
                                  "tests/samples/libreoffice-help" / name);
    std::string text;
    for (std::size_t i = begin; i < end; ++i) text += lines[i] + "\n";
    return folder.write(std::to_string(begin) + "." + name, text).string();
  }
};

/// Settings of small updates with limits that bind.
inline UpdateSettings small_updates(int rank = 0, int ranks = 1) {
  return {.seed = 5,
          .tokens_per_update = 1500,
          .rank = rank,
          .ranks = ranks,
          .limits = {.source_tokens = 1024,
                     .target_tokens = 1024,
                     .sentences = 64,
                     .longest = 256,
                     .sum_squares = 100000}};
}

/// Every byte of an update that training can see.
inline std::string bytes_of(const UpdateBatches& u) {
  std::string all;
  const auto number = [&](std::int64_t n) { all += std::to_string(n) + ' '; };
  for (const std::int64_t n : {u.cursor.epoch, u.cursor.update, u.next.epoch, u.next.update,
                               u.sentences, u.source_tokens, u.target_tokens})
    number(n);
  for (const SentenceRef r : u.references) {
    number(r.corpus);
    number(r.index);
  }
  const auto tensor = [&](const Tensor& t) {
    all += t.description();
    all.append(static_cast<const char*>(t.raw()), static_cast<std::size_t>(t.bytes()));
  };
  for (const HostBatch& micro : u.micro_batches()) {
    const TokenBatch& b = micro.batch();
    for (const PackedTokens* side : {&b.source, &b.target}) {
      for (const std::int64_t n :
           {side->tokens, side->rows, side->sentences, side->longest, side->sum_squares})
        number(n);
      for (const Tensor& t : {side->ids, side->positions, side->ordinals, side->offsets}) tensor(t);
    }
    tensor(b.labels);
    number(b.sum_products);
  }
  return all;
}

}  // namespace octavo
