#include "data/prepared.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/file.h"

namespace octavo {

namespace {

namespace fs = std::filesystem;

constexpr const char* kJointModel = "subwords";
constexpr const char* kSourceModel = "source";
constexpr const char* kTargetModel = "target";

std::map<std::string, std::string> subword_settings(const SubwordConfig& s) {
  std::map<std::string, std::string> settings{{"data.subwords.joint", s.joint ? "true" : "false"}};
  if (s.model || s.source_model) {
    settings["data.subwords.model"] = s.model.value_or("none");
    settings["data.subwords.source_model"] = s.source_model.value_or("none");
    settings["data.subwords.target_model"] = s.target_model.value_or("none");
    return settings;
  }
  settings["data.subwords.kind"] = s.kind == SubwordKind::bpe ? "bpe" : "unigram";
  settings["data.subwords.vocabulary_size"] = fmt::format("{}", s.vocabulary_size);
  settings["data.subwords.character_coverage"] = fmt::format("{}", s.character_coverage);
  settings["data.subwords.training_lines"] = fmt::format("{}", s.training_lines);
  return settings;
}

/// Says which setting differs.
void check_settings(const DataConfig& config, const Manifest& manifest, const Part& part) {
  const auto entry = manifest.find(part.name);
  if (entry == manifest.end()) {
    throw UserError(
        fmt::format("data.prepared: {} has no '{}' yet. Run 'octavo prepare' with this "
                    "configuration.",
                    config.prepared, part.name));
  }
  const auto& then = entry->second.settings;
  if (then == part.settings) return;
  for (const auto& [key, value] : part.settings) {
    const auto old = then.find(key);
    if (old != then.end() && old->second == value) continue;
    throw UserError(fmt::format(
        "data.prepared: '{}' in {} was made with {} = {}, but it is {} now. Run 'octavo prepare' "
        "with this configuration, or give it a folder of its own.",
        part.name, config.prepared, key, old == then.end() ? "(nothing)" : old->second, value));
  }
  throw UserError(
      fmt::format("data.prepared: '{}' in {} was made with other settings. Run 'octavo "
                  "prepare' with this configuration.",
                  part.name, config.prepared));
}

[[noreturn]] void is_gone(const fs::path& path) {
  throw UserError(fmt::format("{} is gone. Run 'octavo prepare' again: it makes what is missing.",
                              path.string()));
}

Corpus open_corpus(const fs::path& folder, const Part& part, const Manifest& manifest,
                   const SubwordPair& subwords) {
  const fs::path path = folder / part.corpus_file();
  if (!fs::exists(path)) is_gone(path);
  Corpus corpus(path);
  const ManifestEntry& entry = manifest.at(part.name);
  const auto noted = entry.outputs.find(part.corpus_file());
  const auto& metadata = corpus.metadata();
  const auto made_with = [&](const char* key, const Subwords& model) {
    const auto found = metadata.find(key);
    return found != metadata.end() && found->second == model.hash();
  };
  if (noted == entry.outputs.end() || noted->second != corpus.content_hash() ||
      !made_with("subwords.source", *subwords.source) ||
      !made_with("subwords.target", *subwords.target)) {
    throw UserError(fmt::format(
        "{}: this corpus and the rest of its folder were not made together. Run 'octavo prepare' "
        "again.",
        corpus.path().string()));
  }
  corpus.verify();
  return corpus;
}

/// The models' files are those that were made with the corpora.
void check_models(const fs::path& folder, const Part& part, const Manifest& manifest) {
  for (const auto& [file, hash] : manifest.at(part.name).outputs) {
    if (!fs::exists(folder / file)) is_gone(folder / file);
    if (hash_file(folder / file) == hash) continue;
    throw UserError(
        fmt::format("{}: this file is not what 'octavo prepare' wrote: it is damaged or of another "
                    "preparation. Run 'octavo prepare' again.",
                    (folder / file).string()));
  }
}

}  // namespace

std::vector<std::string> subword_files(bool joint) {
  std::vector<std::string> files;
  for (const char* model : {kJointModel, kSourceModel, kTargetModel}) {
    if ((model == kJointModel) != joint) continue;
    files.push_back(model + std::string(".model"));
    files.push_back(model + std::string(".vocab"));
  }
  return files;
}

SubwordPair load_subwords(const fs::path& folder, bool joint) {
  const auto load = [&](const char* model) {
    const fs::path file = folder / (model + std::string(".model"));
    if (fs::exists(file)) return std::make_shared<const Subwords>(Subwords::load(file));
    throw UserError(
        fmt::format("{}: the subword model is gone. 'octavo prepare' makes it, and every "
                    "checkpoint has a copy.",
                    file.string()));
  };
  if (!joint) return {.source = load(kSourceModel), .target = load(kTargetModel)};
  const auto both = load(kJointModel);
  return {.source = both, .target = both};
}

std::vector<Part> parts_of(const DataConfig& config) {
  std::vector<Part> parts{{.name = "subwords", .settings = subword_settings(config.subwords)}};
  const std::string length = fmt::format("{}", config.max_length);
  const auto add = [&](const std::string& name, const TextPair& files) -> Part& {
    return parts.emplace_back(Part{.name = name,
                                   .settings = {{"data.max_length", length},
                                                {files.setting + ".source", files.source.string()},
                                                {files.setting + ".target", files.target.string()}},
                                   .files = files});
  };
  for (std::size_t i = 0; i < config.train.size(); ++i) {
    const TrainCorpusConfig& train = config.train[i];
    Part& part = add(fmt::format("train.{}", i), {.setting = fmt::format("data.train[{}]", i),
                                                  .source = train.source,
                                                  .target = train.target});
    part.settings["data.max_ratio"] =
        config.max_ratio ? fmt::format("{}", *config.max_ratio) : "none";
    part.settings["data.subwords.sample"] = config.subwords.sample ? "on" : "none";
    part.trained_on = true;
  }
  if (config.dev.given()) {
    add("dev", {.setting = "data.dev", .source = config.dev.source, .target = config.dev.target});
  }
  return parts;
}

PreparedData open_prepared(const DataConfig& config) {
  const fs::path folder = config.prepared;
  const Manifest manifest = read_manifest(folder);
  const std::vector<Part> parts = parts_of(config);
  for (const Part& part : parts) {
    check_settings(config, manifest, part);
    if (!part.files) check_models(folder, part, manifest);
  }
  PreparedData data{
      .subwords = load_subwords(folder, config.subwords.joint), .train = {}, .dev = {}};
  for (const Part& part : parts) {
    if (!part.files) continue;
    Corpus corpus = open_corpus(folder, part, manifest, data.subwords);
    if (part.trained_on) {
      data.train.push_back(std::move(corpus));
    } else {
      data.dev.emplace(std::move(corpus));
    }
  }
  return data;
}

TrainingData training_data(const PreparedData& data, const DataConfig& config) {
  TrainingData training{.corpora = {},
                        .weights = {},
                        .source = data.subwords.source.get(),
                        .target = data.subwords.target.get(),
                        .sample = config.subwords.sample,
                        .max_length = config.max_length};
  expect(data.train.size() == config.train.size(), "training_data: opened with other settings");
  for (std::size_t i = 0; i < data.train.size(); ++i) {
    training.corpora.push_back(&data.train[i]);
    training.weights.push_back(config.train[i].weight);
  }
  return training;
}

}  // namespace octavo
