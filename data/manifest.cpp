#include "data/manifest.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"

namespace octavo {

namespace {

constexpr int kFormat = 1;

nlohmann::json to_json(const PairCounts& counts) {
  nlohmann::json json{{"lines", counts.lines},
                      {"kept", counts.kept},
                      {"source_tokens", counts.source_tokens},
                      {"target_tokens", counts.target_tokens},
                      {"dropped", nlohmann::json::object()}};
  for (std::size_t r = 0; r < kDropReasons.size(); ++r) {
    json["dropped"][std::string(kDropReasons[r])] = {{"pairs", counts.dropped[r].pairs},
                                                     {"first_line", counts.dropped[r].first_line}};
  }
  return json;
}

PairCounts counts_from(const nlohmann::json& json) {
  PairCounts counts{.lines = json.at("lines"),
                    .kept = json.at("kept"),
                    .source_tokens = json.at("source_tokens"),
                    .target_tokens = json.at("target_tokens"),
                    .dropped = {}};
  for (std::size_t r = 0; r < kDropReasons.size(); ++r) {
    const auto& dropped = json.at("dropped").at(std::string(kDropReasons[r]));
    counts.dropped[r] = {.pairs = dropped.at("pairs"), .first_line = dropped.at("first_line")};
  }
  return counts;
}

}  // namespace

Manifest read_manifest(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kManifestFile;
  if (!std::filesystem::exists(path)) return {};
  Manifest manifest;
  try {
    const auto json = nlohmann::json::parse(read_file(path));
    if (json.at("format") != kFormat) return {};
    for (const auto& [name, entry] : json.at("made").items()) {
      manifest[name] = {.settings = entry.at("settings"),
                        .inputs = entry.at("inputs"),
                        .outputs = entry.at("outputs"),
                        .counts = counts_from(entry.at("counts"))};
    }
  } catch (const nlohmann::json::exception& e) {
    throw UserError(
        fmt::format("{}: the file is damaged ({}). Remove {} and run 'octavo prepare': everything "
                    "is made again.",
                    path.string(), json_reason(e), folder.string()));
  }
  return manifest;
}

void write_manifest(const std::filesystem::path& folder, const Manifest& manifest) {
  nlohmann::json made = nlohmann::json::object();
  for (const auto& [name, entry] : manifest) {
    made[name] = {{"settings", entry.settings},
                  {"inputs", entry.inputs},
                  {"outputs", entry.outputs},
                  {"counts", to_json(entry.counts)}};
  }
  write_file(folder / kManifestFile,
             nlohmann::json{{"format", kFormat}, {"made", made}}.dump(1) + "\n");
}

}  // namespace octavo
