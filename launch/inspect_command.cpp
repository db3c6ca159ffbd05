#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>

#include "configs/experiment.h"
#include "core/error.h"
#include "core/output.h"
#include "core/safetensors.h"
#include "data/corpus.h"
#include "data/manifest.h"
#include "launch/commands.h"
#include "trainer/checkpoint.h"
#include "trainer/progress_text.h"
#include "trainer/run_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCorpusMagic = "octcorp\n";

std::string_view type_word(ColumnType type) {
  switch (type) {
    case ColumnType::tokens16:
      return "ids of 16 bits";
    case ColumnType::tokens32:
      return "ids of 32 bits";
    case ColumnType::text:
      return "bytes of text";
    case ColumnType::number:
      return "numbers";
  }
  return "?";
}

/// Names, types, shapes and counts of a file's tensors, then their sum.
std::string tensors_text(const SafetensorsFile& file) {
  std::size_t width = 0;
  for (const auto& entry : file.entries()) width = std::max(width, entry.name.size());
  std::string text;
  std::int64_t numbers = 0;
  for (const auto& entry : file.entries()) {
    const std::int64_t count =
        (entry.end - entry.begin) / static_cast<std::int64_t>(bytes_of(entry.type));
    text += fmt::format("  {:<{}}  {:<4}  {:>15}  {:>13}\n", entry.name, width, name_of(entry.type),
                        shape_text(entry.shape), with_commas(count));
    numbers += count;
  }
  text += fmt::format("  {} numbers in {} tensors\n", with_commas(numbers), file.entries().size());
  for (const auto& [key, value] : file.metadata()) text += fmt::format("  {}: {}\n", key, value);
  return text;
}

std::string state_text(const TrainingState& s) {
  std::string text = fmt::format(
      "state\n"
      "  update {}, of them {} skipped; epoch {}, update {} of it; seed {}\n"
      "  trained {} on {} source and {} target tokens\n",
      with_commas(s.update), s.skipped_updates, s.epoch + 1, with_commas(s.epoch_update), s.seed,
      short_duration(s.seconds), with_commas(s.source_tokens), with_commas(s.target_tokens));
  if (s.best_score)
    text += fmt::format("  best validation: {:.4f} at update {}, {} validations since\n",
                        *s.best_score, with_commas(s.best_update), s.validations_without_gain);
  for (const auto& [name, hash] : s.hashes) text += fmt::format("  {}  {}\n", hash, name);
  return text;
}

std::string checkpoint_text(const fs::path& path) {
  const Checkpoint checkpoint(find_checkpoint(path));
  checkpoint.verify();
  std::string text = fmt::format("checkpoint {}\nwritten by {}; every file is as it was written\n",
                                 checkpoint.path().string(), checkpoint.program());
  for (const auto& [name, file] : checkpoint.files())
    text += fmt::format("  {}  {:>15} bytes  {}\n", file.hash, with_commas(file.size), name);
  if (checkpoint.has(kStateFile)) text += state_text(checkpoint.state());
  const SafetensorsFile weights = checkpoint.translation_weights();
  text += fmt::format("{}\n{}", weights.path().filename().string(), tensors_text(weights));
  if (checkpoint.has(kSettingsFile)) text += "settings\n" + checkpoint.text(kSettingsFile);
  return text;
}

std::string corpus_text(const fs::path& path) {
  const Corpus corpus(path);
  corpus.verify();
  std::string text = fmt::format("corpus {}\n{} rows; content {}, as it was written\n",
                                 path.string(), with_commas(corpus.rows()), corpus.content_hash());
  for (std::size_t c = 0; c < corpus.columns().size(); ++c) {
    const auto elements = static_cast<double>(corpus.elements(c));
    const auto rows = static_cast<double>(std::max<std::int64_t>(1, corpus.rows()));
    text += fmt::format("  {:<12}  {:>15} {:<14}  {:.2f} a row\n", corpus.columns()[c].name,
                        with_commas(corpus.elements(c)), type_word(corpus.columns()[c].type),
                        elements / rows);
  }
  for (const auto& [key, value] : corpus.metadata()) text += fmt::format("  {}: {}\n", key, value);
  return text;
}

/// What a prepared folder was made from and holds.
std::string prepared_text(const fs::path& folder) {
  std::string text = fmt::format("prepared folder {}\n", folder.string());
  for (const auto& [name, entry] : read_manifest(folder)) {
    const bool corpus = entry.outputs.contains(name + ".corpus");
    text += fmt::format("{}{}\n", name, corpus ? ": " + entry.counts.description() : "");
    for (const auto& [key, value] : entry.settings) text += fmt::format("  {} = {}\n", key, value);
    for (const auto& [file, hash] : entry.outputs) text += fmt::format("  {}  {}\n", hash, file);
  }
  return text;
}

/// The first bytes of a file. @throws UserError
std::string first_bytes(const fs::path& path, std::size_t count) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UserError("cannot open " + system_reason(path.string(), errno));
  std::string bytes(count, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  return bytes;
}

std::string text_of(const fs::path& path) {
  std::error_code error;
  if (fs::exists(path / kManifestFile, error)) return prepared_text(path);
  if (!fs::is_regular_file(path, error)) return checkpoint_text(path);
  const std::string extension = path.extension().string();
  if (extension == ".safetensors") return tensors_text(SafetensorsFile(path));
  if (first_bytes(path, kCorpusMagic.size()) == kCorpusMagic) return corpus_text(path);
  if (extension == ".yaml" || extension == ".yml") return resolved_yaml(read_experiment(path, {}));
  throw UserError(fmt::format(
      "{} is no checkpoint, run, prepared folder, corpus, safetensors file or settings (.yaml)",
      path.string()));
}

}  // namespace

Command inspect_command() {
  auto path = std::make_shared<std::string>();
  Command c;
  c.name = "inspect";
  c.summary = "shapes, counts, settings and hashes of a checkpoint, a corpus or a settings file";
  c.usage = "RUN|CHECKPOINT|PREPARED|CORPUS|CONFIG";
  c.options.add_options()(
      "path", po::value(path.get())->required()->value_name("PATH"),
      "a run (its best checkpoint, else its newest), a checkpoint, a folder "
      "or a corpus made by 'octavo prepare', a safetensors file, or settings (.yaml): "
      "checked, and shown with their defaults");
  c.positional.add("path", 1);
  c.run = [path](const po::variables_map&) {
    StandardOutput out;
    out.write(text_of(*path));
    out.flush();
    return 0;
  };
  return c;
}

}  // namespace octavo
