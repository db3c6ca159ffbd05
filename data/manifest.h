#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "data/text_pairs.h"

namespace octavo {

/// What was made, from what, with which settings: prepared.json of a prepared folder.
/// docs/formats/prepared.md
struct ManifestEntry {
  std::map<std::string, std::string> settings;  ///< names of settings and their values
  std::map<std::string, std::string> inputs;    ///< what it was made from -> XXH3
  std::map<std::string, std::string> outputs;   ///< file -> XXH3 (of a corpus: of its content)
  PairCounts counts;                            ///< of a corpus
};

using Manifest = std::map<std::string, ManifestEntry>;

inline constexpr std::string_view kManifestFile = "prepared.json";

/// The manifest of a folder; empty if the folder has none.
/// @throws UserError  it can't be read.
Manifest read_manifest(const std::filesystem::path& folder);
/// @throws UserError
void write_manifest(const std::filesystem::path& folder, const Manifest& manifest);

}  // namespace octavo
