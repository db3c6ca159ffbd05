#include "trainer/recipe.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/lines.h"
#include "data/corpus.h"
#include "data/manifest.h"
#include "data/prepared.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "octavo recipe";
constexpr int kVersion = 1;
constexpr std::string_view kAbsent = "(none)";
constexpr std::string_view kKept = ".kept";

using Json = nlohmann::ordered_json;

Json json_of(const RecipeStart& start) {
  const Recipe& r = start.recipe;
  return {{"update", start.update},
          {"program", r.program},
          {"machine", r.machine},
          {"settings", r.settings},
          {"data", r.data}};
}

RecipeStart start_from(const Json& json) {
  return {.update = json.at("update"),
          .recipe = {.program = json.at("program"),
                     .machine = json.at("machine"),
                     .settings = json.at("settings"),
                     .data = json.at("data")}};
}

std::string text_fact(const std::string& hash, std::int64_t lines) {
  return fmt::format("{} ({} lines)", hash, lines);
}

std::string counts_fact(const PairCounts& counts) {
  return fmt::format("{} pairs, {} source and {} target tokens", counts.kept, counts.source_tokens,
                     counts.target_tokens);
}

std::int64_t count_lines(const fs::path& file) {
  LineReader reader(file);
  while (reader.next()) {
  }
  return reader.line_number();
}

/// The hash that a manifest would have for a file that was made. @throws UserError  it is damaged.
std::string output_hash(const fs::path& file) {
  if (file.extension() != ".corpus") return hash_file(file);
  const Corpus corpus(file);
  corpus.verify();
  return corpus.content_hash();
}

}  // namespace

std::vector<RecipeStart> read_recipe_lock(const fs::path& file) {
  std::vector<RecipeStart> starts;
  try {
    const auto json = Json::parse(read_file(file));
    if (json.at("format") != kFormat || json.at("version") != kVersion)
      throw UserError(fmt::format("{}: no recipe that this program can read", file.string()));
    for (const Json& start : json.at("starts")) starts.push_back(start_from(start));
  } catch (const nlohmann::json::exception& e) {
    throw UserError(
        fmt::format("{}: the file is damaged ({}). Remove it: the next start of the "
                    "run writes a new one.",
                    file.string(), json_reason(e)));
  }
  return starts;
}

void note_start(const fs::path& run, const RecipeStart& start) {
  const fs::path file = run / kRecipeFile;
  std::vector<RecipeStart> starts;
  if (start.update > 0 && fs::exists(file)) starts = read_recipe_lock(file);
  if (!starts.empty() && starts.back().recipe == start.recipe) return;
  starts.push_back(start);
  Json list = Json::array();
  for (const RecipeStart& s : starts) list.push_back(json_of(s));
  write_file(file,
             Json{{"format", kFormat}, {"version", kVersion}, {"starts", list}}.dump(1) + "\n");
}

Facts prepared_facts(const DataConfig& config) {
  const Manifest manifest = read_manifest(config.prepared);
  Facts facts;
  for (const Part& part : parts_of(config)) {
    const auto found = manifest.find(part.name);
    if (found == manifest.end()) continue;
    const ManifestEntry& entry = found->second;
    for (const auto& [file, hash] : entry.outputs) facts[file] = hash;
    if (!part.files) continue;
    for (const char* side : {"source", "target"})
      facts[part.name + "." + side] = text_fact(entry.inputs.at(side), entry.counts.lines);
    facts[part.name + std::string(kKept)] = counts_fact(entry.counts);
  }
  return facts;
}

Facts facts_here(const DataConfig& config) {
  Facts facts;
  for (const auto& [name, fact] : prepared_facts(config)) {
    const fs::path file = fs::path(config.prepared) / name;
    if (name.ends_with(kKept)) facts[name] = fact;
    if (fs::exists(file)) facts[name] = output_hash(file);
  }
  for (const Part& part : parts_of(config)) {
    if (!part.files) continue;
    const auto add = [&](const char* side, const fs::path& file) {
      if (fs::exists(file))
        facts[part.name + "." + side] = text_fact(hash_file(file), count_lines(file));
    };
    add("source", part.files->source);
    add("target", part.files->target);
  }
  return facts;
}

std::vector<RecipeDifference> differences(const Facts& then, const Facts& now) {
  Facts all = then;
  all.insert(now.begin(), now.end());
  const auto value = [](const Facts& facts, const std::string& name) {
    const auto found = facts.find(name);
    return found == facts.end() ? std::string(kAbsent) : found->second;
  };
  std::vector<RecipeDifference> list;
  for (const auto& [name, any] : all) {
    RecipeDifference difference{.name = name, .then = value(then, name), .now = value(now, name)};
    if (difference.then != difference.now) list.push_back(std::move(difference));
  }
  return list;
}

bool names_a_place(std::string_view key) {
  constexpr std::array<std::string_view, 2> kFolders{"data.prepared", "trainer.output"};
  for (const std::string_view folder : kFolders)
    if (key == folder) return true;
  return key.starts_with("data.") && (key.ends_with(".source") || key.ends_with(".target"));
}

}  // namespace octavo
