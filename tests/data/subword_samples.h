#pragma once

#include <gtest/gtest.h>
#include <sentencepiece_trainer.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/lines.h"
#include "data/subwords.h"

namespace octavo::testkit {

using Ids = std::vector<std::int32_t>;

inline std::vector<std::string> sample_lines(const std::string& name) {
  return read_lines(std::filesystem::path(OCTAVO_SOURCE_DIR) / "tests/samples/libreoffice-help" /
                    name);
}

/// A model as somebody else would train it with SentencePiece, its defaults and `options`.
class ForeignLines : public sentencepiece::SentenceIterator {
 public:
  bool done() const override { return next_ == lines_.size(); }
  void Next() override { ++next_; }
  const std::string& value() const override { return lines_[next_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::vector<std::string> lines_ = sample_lines("test.de");
  std::size_t next_ = 0;
};

inline std::string foreign_model(std::unordered_map<std::string, std::string> options) {
  options.insert({{"vocab_size", "600"}, {"minloglevel", "2"}, {"num_threads", "1"}});
  ForeignLines lines;
  std::string serialized;
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, &lines, &serialized);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return serialized;
}

inline Ids encode(const Subwords& subwords, std::string_view text) {
  Ids ids;
  SubwordEncoder(subwords).encode(text, ids);
  return ids;
}

}  // namespace octavo::testkit
