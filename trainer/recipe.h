#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/config.h"

/// What a run was made from, so that somebody else can make it again: RUN/recipe.lock.
/// docs/formats/recipe.md
namespace octavo {

/// Names and values, all as text.
using Facts = std::map<std::string, std::string>;

struct Recipe {
  Facts program;   ///< version, source revision, libraries that compute
  Facts machine;   ///< processor, ranks, threads: may be others elsewhere
  Facts settings;  ///< every setting with its value
  Facts data;      ///< hashes and counts of text, subword models, vocabularies and corpora
  bool operator==(const Recipe&) const = default;
};

/// One start of a training: a run that was resumed has several.
struct RecipeStart {
  std::int64_t update = 0;  ///< after which it went on; 0: from the beginning
  Recipe recipe;
};

inline constexpr std::string_view kRecipeFile = "recipe.lock";

/// @throws UserError  it can't be read, or is damaged.
std::vector<RecipeStart> read_recipe_lock(const std::filesystem::path& file);

/// Adds a start to RUN/recipe.lock, in one step, unless the last one was the same. A start at
/// update 0 begins the file anew. @throws UserError
void note_start(const std::filesystem::path& run, const RecipeStart& start);

/// Of what `config` uses of its prepared folder, as the folder's manifest tells.
/// @throws UserError  the manifest can't be read.
Facts prepared_facts(const DataConfig& config);

/// The same facts of the files that lie here now, every one read: the text where `config` names it,
/// and the prepared folder. What is not here has no entry.
/// @throws UserError  a file is here, but can't be read.
Facts facts_here(const DataConfig& config);

struct RecipeDifference {
  std::string name, then, now;  ///< "(none)" where one side has no such entry
};

/// In the order of the names.
std::vector<RecipeDifference> differences(const Facts& then, const Facts& now);

/// Whether a setting only says where something lies: what lies there is compared by content.
bool names_a_place(std::string_view key);

}  // namespace octavo
