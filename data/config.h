#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/settings.h"
#include "data/piece_model.h"

namespace octavo {

template <>
struct EnumNames<SubwordKind> {
  static constexpr std::array<std::pair<SubwordKind, std::string_view>, 2> values{
      {{SubwordKind::bpe, "bpe"}, {SubwordKind::unigram, "unigram"}}};
};

/// A parallel corpus to train on. Paths may change on resume: what counts is the text's hash.
struct TrainCorpusConfig {
  std::string source;
  std::string target;
  double weight = 1.0;

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("source", source, "text to translate from, one sentence per line; .gz is read as is",
              v.required(), v.may_change());
    v.setting("target", target, "its translation, line by line", v.required(), v.may_change());
    v.setting("weight", weight,
              "times each pair is seen per epoch; 2.5: twice, and half of them, drawn anew each "
              "epoch, once more",
              v.at_least(0), v.at_most(1000));
  }
};

/// A parallel text that is not trained on.
struct HeldOutConfig {
  std::string source;
  std::string target;

  bool given() const { return !source.empty(); }

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("source", source, "text to translate from; empty: there is none", v.may_change());
    v.setting("target", target, "its translation, line by line", v.may_change());
    v.check(source.empty() == target.empty(), "target", "source and target go together");
  }
};

struct SubwordConfig {
  SubwordKind kind = SubwordKind::bpe;
  std::int64_t vocabulary_size = 32000;
  bool joint = true;
  double character_coverage = 0.9998;
  std::int64_t training_lines = 1000000;
  std::optional<std::string> model;
  std::optional<std::string> source_model;
  std::optional<std::string> target_model;
  std::optional<double> sample;

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("kind", kind, "how subwords are found: byte pairs, or a unigram language model");
    v.setting("vocabulary_size", vocabulary_size,
              "subwords, of each side if not joint; 4 special pieces and 256 bytes are among them",
              v.closed(261, 1000000));
    v.setting("joint", joint, "one model for source and target; false: one for each");
    v.setting("character_coverage", character_coverage,
              "share of the text's characters that get a subword of their own; rare ones are "
              "spelled in bytes",
              v.closed(0.98, 1));
    v.setting("training_lines", training_lines,
              "most lines that a model is trained on, drawn at random from the training text",
              v.closed(100, 100000000));
    v.setting("model", model,
              "a SentencePiece model made elsewhere, for both sides; none: one is trained");
    v.setting("source_model", source_model, "likewise, of the source, if not joint");
    v.setting("target_model", target_model, "likewise, of the target, if not joint");
    v.setting(
        "sample", sample,
        "cut words anew in each epoch. bpe: chance that a merge is left out (BPE-dropout), "
        "usually 0.1; unigram: alpha of subword regularisation, usually 0.2 to 0.5, larger is "
        "milder; none: always the best cut",
        v.above(0));
    v.check(joint || !model, "joint",
            "with 'model' it must be true; else give source_model and "
            "target_model");
    v.check(!joint || (!source_model && !target_model), "joint",
            "with source_model and target_model it must be false");
    v.check(source_model.has_value() == target_model.has_value(), "target_model",
            "source_model and target_model go together");
  }
};

/// What is trained on, and how text becomes ids.
struct DataConfig {
  std::string prepared;
  std::vector<TrainCorpusConfig> train;
  HeldOutConfig dev;
  SubwordConfig subwords;
  std::int64_t max_length = 256;
  std::optional<double> max_ratio = 3.0;

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("prepared", prepared,
              "folder for the subword model and the binary corpora that 'octavo prepare' makes",
              v.required(), v.may_change());
    v.setting("train", train, "parallel corpora to train on", v.required());
    v.section("dev", dev, "parallel text for validation during training");
    v.section("subwords", subwords, "how words are cut into subwords");
    v.setting("max_length", max_length,
              "longest sentence in subwords, EOS counted; pairs with a longer side are dropped",
              v.closed(2, 65536));
    v.setting("max_ratio", max_ratio,
              "largest ratio of the two sides' lengths (EOS counted) in training; others are "
              "dropped; none: keep all",
              v.at_least(1));
  }
};

}  // namespace octavo
