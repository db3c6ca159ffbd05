#include "data/prepare.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <regex>
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

/// Whether a file of this name in a prepared folder is ours to write, replace and remove.
bool is_output(const std::string& name) {
  static const std::regex names(R"(prepared\.json|(subwords|source|target)\.(model|vocab)|)"
                                R"((train\.[0-9]+|dev)\.corpus)");
  return std::regex_match(name, names);
}

/// Removes what a killed preparation left half-written. The folder is locked: nobody writes there.
void remove_leftovers(const fs::path& folder) {
  static const std::regex ending(R"(\.tmp\.[0-9]+$)");
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const std::string whole = std::regex_replace(name, ending, "");
    if (whole != name && is_output(whole)) remove_file(entry.path());
  }
}

/// A folder without a manifest was never prepared: a file of our names there is somebody else's.
void check_folder(const fs::path& folder) {
  if (fs::exists(folder / kManifestFile)) return;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!is_output(entry.path().filename().string())) continue;
    throw UserError(
        fmt::format("data.prepared: 'octavo prepare' would replace {}, which it did not make: {} "
                    "has no {}. Give a folder of its own, or remove the file.",
                    entry.path().string(), folder.string(), kManifestFile));
  }
}

/// A subword model that is not written yet.
struct Model {
  std::string name;    // of its file, without ".model"
  std::string origin;  // for messages
  std::string serialized;
};

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
  void check_input(const std::string& setting, const fs::path& file,
                   const std::string& becomes) const;
  const std::string& hash_of(const std::string& setting, const fs::path& file,
                             const std::string& becomes = "");
  std::pair<std::string, std::string> hash_text(const TextPair& files);
  std::map<std::string, std::string> inputs(const Part& part);
  bool up_to_date(const Part& part, const std::map<std::string, std::string>& inputs) const;
  bool output_is(const std::string& file, const std::string& hash) const;
  std::vector<Model> subword_models() const;
  ManifestEntry make_subwords();
  ManifestEntry make_corpus(const Part& part);
  std::vector<std::string> sample(bool source, bool target) const;
  void remove_former_models(const ManifestEntry& entry);

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
  // From now on files of our names are ours, even if we are killed before the first is complete.
  if (!fs::exists(folder_ / kManifestFile)) write_manifest(folder_, manifest_);
  for (const Part& part : parts_) {
    const auto from = inputs(part);
    const bool made = !up_to_date(part, from);
    if (made) {
      ManifestEntry entry = part.files ? make_corpus(part) : make_subwords();
      entry.settings = part.settings;
      entry.inputs = from;
      manifest_[part.name] = std::move(entry);
      write_manifest(folder_, manifest_);
    }
    if (!part.files) subwords_ = load_subwords(folder_, config_.subwords.joint);
    const PairCounts& counts = manifest_[part.name].counts;
    spdlog::info("[data] {}: {}{}", part.name, made ? "made" : "up to date",
                 part.files ? "; " + counts.description() : "");
    report.push_back({.name = part.name, .made = made, .counts = counts});
  }
  return report;
}

/// Inputs are read more than once, and what is written here must not replace them by something
/// else.
/// @param becomes  the output, if any, that is a copy of the input: they may be the same file.
void Preparation::check_input(const std::string& setting, const fs::path& file,
                              const std::string& becomes) const {
  std::error_code none;  // a file that can't be looked at can't be opened either: that is told then
  if (fs::exists(file, none) && !fs::is_regular_file(file, none)) {
    throw UserError(fmt::format("{}: {} is no ordinary file; it is read more than once", setting,
                                file.string()));
  }
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (name == becomes || !is_output(name) || !fs::equivalent(entry.path(), file, none)) continue;
    throw UserError(
        fmt::format("{}: {} lies where 'octavo prepare' writes: it is {} of data.prepared. Give "
                    "one of the two another place.",
                    setting, file.string(), name));
  }
}

/// @param setting  that names the file, for messages.
/// @param becomes  see check_input.
const std::string& Preparation::hash_of(const std::string& setting, const fs::path& file,
                                        const std::string& becomes) {
  const auto [entry, fresh] = hashes_.try_emplace(file.string());
  if (!fresh) return entry->second;
  check_input(setting, file, becomes);
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
  if (s.model) return {{"model", hash_of("data.subwords.model", *s.model, "subwords.model")}};
  if (s.source_model) {
    return {
        {"source_model", hash_of("data.subwords.source_model", *s.source_model, "source.model")},
        {"target_model", hash_of("data.subwords.target_model", *s.target_model, "target.model")}};
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

/// The models as the settings want them: given, or trained now.
std::vector<Model> Preparation::subword_models() const {
  const SubwordConfig& s = config_.subwords;
  if (s.model) return {{"subwords", *s.model, read_file(*s.model)}};
  if (s.source_model) {
    return {{"source", *s.source_model, read_file(*s.source_model)},
            {"target", *s.target_model, read_file(*s.target_model)}};
  }
  const SubwordTraining training{.kind = s.kind,
                                 .vocabulary_size = s.vocabulary_size,
                                 .character_coverage = s.character_coverage};
  const auto train = [&](const char* name, bool source, bool target) -> Model {
    std::vector<std::string> lines = sample(source, target);
    spdlog::info("[data] training the subword model '{}' on {} lines", name, lines.size());
    return {name, "the trained model", train_subwords(training, std::move(lines))};
  };
  if (s.joint) return {train("subwords", true, true)};
  return {train("source", true, false), train("target", false, true)};
}

/// Writes the models' files and their vocabularies'. All models are read before any file is
/// replaced: one that can't be used leaves everything as it was.
ManifestEntry Preparation::make_subwords() {
  const std::vector<Model> models = subword_models();
  std::vector<Subwords> usable;
  usable.reserve(models.size());
  for (const Model& model : models) usable.emplace_back(model.serialized, model.origin);
  ManifestEntry entry;
  for (std::size_t i = 0; i < models.size(); ++i) {
    const std::string& name = models[i].name;
    write_file(folder_ / (name + ".model"), models[i].serialized);
    usable[i].vocabulary().write(folder_ / (name + ".vocab"));
    entry.outputs[name + ".model"] = usable[i].hash();
    entry.outputs[name + ".vocab"] = usable[i].vocabulary().hash();
  }
  remove_former_models(entry);
  return entry;
}

/// Removes models that an earlier preparation made and this one does not: last, so that they are
/// lost only when their successors are there.
void Preparation::remove_former_models(const ManifestEntry& entry) {
  const auto former = manifest_.find("subwords");
  if (former == manifest_.end()) return;
  for (const auto& [file, hash] : former->second.outputs)
    if (!entry.outputs.contains(file)) remove_file(folder_ / file);
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
  check_folder(config.prepared);
  remove_leftovers(config.prepared);
  return Preparation(config, threads).run();
}

}  // namespace octavo
