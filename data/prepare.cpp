#include "data/prepare.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/folder_lock.h"
#include "data/prepared.h"
#include "data/subword_training.h"

namespace octavo {

namespace {

namespace fs = std::filesystem;

/// Longer lines teach a subword model nothing.
constexpr std::size_t kLongestTrainingLine = 10000;
constexpr std::uint64_t kSampleSeed = 1;
constexpr std::size_t kBlockLines = 4096;

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw UserError(
        fmt::format("data.prepared: cannot make {}: {}.", folder.string(), error.message()));
  }
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw UserError(fmt::format("cannot remove {}: {}", path.string(), error.message()));
}

/// Removes what a killed preparation left half-written. The folder is locked: nobody writes there.
void remove_leftovers(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.find(".corpus.tmp.") != std::string::npos ||
        name.find(".model.tmp.") != std::string::npos ||
        name.find(".vocab.tmp.") != std::string::npos || name.starts_with("prepared.json.tmp."))
      remove_file(entry.path());
  }
}

/// The preparation of one folder.
class Preparation {
 public:
  Preparation(const DataConfig& config, int threads)
      : config_(config),
        threads_(threads),
        folder_(config.prepared),
        parts_(parts_of(config)),
        manifest_(read_manifest(folder_)) {}

  std::vector<PreparedPart> run();

 private:
  const std::string& hash_of(const std::string& setting, const fs::path& file);
  std::pair<std::string, std::string> hash_text(const TextPair& files);
  std::map<std::string, std::string> inputs(const Part& part);
  bool up_to_date(const Part& part, const std::map<std::string, std::string>& inputs) const;
  bool output_is(const std::string& file, const std::string& hash) const;
  ManifestEntry make_subwords();
  ManifestEntry make_corpus(const Part& part);
  std::vector<std::string> sample(bool source, bool target) const;
  void write_model(const std::string& name, const std::string& origin,
                   const std::string& serialized, ManifestEntry& entry);

  const DataConfig& config_;
  int threads_;
  fs::path folder_;
  std::vector<Part> parts_;
  Manifest manifest_;
  std::map<std::string, std::string> hashes_;  // of files read already
  SubwordPair subwords_;
};

std::vector<PreparedPart> Preparation::run() {
  std::vector<PreparedPart> report;
  for (const Part& part : parts_) {
    if (part.files) hash_text(*part.files);  // a file that is missing is told before any work
  }
  for (const Part& part : parts_) {
    const auto from = inputs(part);
    const bool made = !up_to_date(part, from);
    if (made) {
      manifest_.erase(part.name);
      ManifestEntry entry = part.files ? make_corpus(part) : make_subwords();
      entry.settings = part.settings;
      entry.inputs = from;
      manifest_[part.name] = std::move(entry);
      write_manifest(folder_, manifest_);
    }
    if (!part.files) subwords_ = load_subwords(folder_);
    const PairCounts& counts = manifest_[part.name].counts;
    spdlog::info("[data] {}: {}{}", part.name, made ? "made" : "up to date",
                 part.files ? "; " + counts.description() : "");
    report.push_back({.name = part.name, .made = made, .counts = counts});
  }
  return report;
}

/// @param setting  that names the file, for messages.
const std::string& Preparation::hash_of(const std::string& setting, const fs::path& file) {
  const auto [entry, fresh] = hashes_.try_emplace(file.string());
  if (!fresh) return entry->second;
  try {
    return entry->second = hash_file(file);
  } catch (const UserError& e) {
    throw UserError(fmt::format("{}: {}", setting, e.what()));
  }
}

std::pair<std::string, std::string> Preparation::hash_text(const TextPair& files) {
  return {hash_of(files.setting + ".source", files.source),
          hash_of(files.setting + ".target", files.target)};
}

/// What the part is made from, by content.
std::map<std::string, std::string> Preparation::inputs(const Part& part) {
  if (part.files) {
    const auto [source, target] = hash_text(*part.files);
    return {{"source", source},
            {"target", target},
            {"subwords.source", subwords_.source->hash()},
            {"subwords.target", subwords_.target->hash()}};
  }
  const SubwordConfig& s = config_.subwords;
  if (s.model) return {{"model", hash_of("data.subwords.model", *s.model)}};
  if (s.source_model) {
    return {{"source_model", hash_of("data.subwords.source_model", *s.source_model)},
            {"target_model", hash_of("data.subwords.target_model", *s.target_model)}};
  }
  std::map<std::string, std::string> text;
  for (const Part& p : parts_) {
    if (!p.trained_on) continue;
    std::tie(text[p.name + ".source"], text[p.name + ".target"]) = hash_text(*p.files);
  }
  return text;
}

bool Preparation::up_to_date(const Part& part,
                             const std::map<std::string, std::string>& inputs) const {
  const auto entry = manifest_.find(part.name);
  if (entry == manifest_.end() || entry->second.settings != part.settings ||
      entry->second.inputs != inputs)
    return false;
  const auto& outputs = entry->second.outputs;
  return std::all_of(outputs.begin(), outputs.end(),
                     [&](const auto& output) { return output_is(output.first, output.second); });
}

/// Whether a file that was made is still what it was, byte for byte.
bool Preparation::output_is(const std::string& file, const std::string& hash) const {
  if (!fs::exists(folder_ / file)) return false;
  if (!file.ends_with(".corpus")) return hash_file(folder_ / file) == hash;
  try {
    const Corpus corpus(folder_ / file);
    corpus.verify();
    return corpus.content_hash() == hash;
  } catch (const UserError& e) {
    spdlog::warn("[data] made again: {}", e.what());
    return false;
  }
}

ManifestEntry Preparation::make_subwords() {
  const SubwordConfig& s = config_.subwords;
  ManifestEntry entry;
  if (s.model) {
    write_model("subwords", *s.model, read_file(*s.model), entry);
  } else if (s.source_model) {
    write_model("source", *s.source_model, read_file(*s.source_model), entry);
    write_model("target", *s.target_model, read_file(*s.target_model), entry);
  } else {
    const SubwordTraining training{.kind = s.kind,
                                   .vocabulary_size = s.vocabulary_size,
                                   .character_coverage = s.character_coverage};
    const auto train = [&](const char* name, bool source, bool target) {
      std::vector<std::string> lines = sample(source, target);
      spdlog::info("[data] training the subword model '{}' on {} lines", name, lines.size());
      write_model(name, "the trained model", train_subwords(training, std::move(lines)), entry);
    };
    if (s.joint) {
      train("subwords", true, true);
    } else {
      train("source", true, false);
      train("target", false, true);
    }
  }
  // Last: what was made before is lost only when its successor is there.
  for (const char* name : {"subwords", "source", "target"}) {
    for (const char* kind : {"model", "vocab"}) {
      const std::string file = fmt::format("{}.{}", name, kind);
      if (!entry.outputs.contains(file)) remove_file(folder_ / file);
    }
  }
  return entry;
}

/// A model's file and its vocabulary's. Reading the model first makes sure that it can be used.
/// @param origin  where the model comes from, for messages.
void Preparation::write_model(const std::string& name, const std::string& origin,
                              const std::string& serialized, ManifestEntry& entry) {
  const Subwords subwords(serialized, origin);
  write_file(folder_ / (name + ".model"), serialized);
  subwords.vocabulary().write(folder_ / (name + ".vocab"));
  entry.outputs[name + ".model"] = subwords.hash();
  entry.outputs[name + ".vocab"] = subwords.vocabulary().hash();
}

/// Lines of all training corpora, as a subword model is trained on them.
std::vector<std::string> Preparation::sample(bool source, bool target) const {
  LineSample sample(static_cast<std::size_t>(config_.subwords.training_lines), kSampleSeed);
  const auto offer = [&](const std::string& line) {
    if (!line.empty() && line.size() <= kLongestTrainingLine && is_valid_utf8(line))
      sample.offer(line);
  };
  std::vector<std::string> s, t;
  for (const Part& part : parts_) {
    if (!part.trained_on) continue;
    PairReader reader(*part.files);
    while (const std::size_t lines = reader.next(kBlockLines, s, t)) {
      for (std::size_t i = 0; i < lines; ++i) {
        if (source) offer(s[i]);
        if (target) offer(t[i]);
      }
    }
  }
  return sample.take();
}

ManifestEntry Preparation::make_corpus(const Part& part) {
  const EncodeSettings settings{
      .max_length = config_.max_length,
      .max_ratio = part.trained_on ? config_.max_ratio : std::nullopt,
      .keep_text = !part.trained_on || config_.subwords.sample.has_value(),
      .threads = threads_};
  const fs::path path = folder_ / part.corpus_file();
  ManifestEntry entry;
  entry.counts = encode_pairs(*part.files, subwords_, settings, path);
  entry.outputs[part.corpus_file()] = Corpus(path).content_hash();
  return entry;
}

}  // namespace

std::vector<PreparedPart> prepare(const DataConfig& config, int threads) {
  make_folder(config.prepared);
  const FolderLock lock(config.prepared, "data.prepared");
  remove_leftovers(config.prepared);
  return Preparation(config, threads).run();
}

}  // namespace octavo
