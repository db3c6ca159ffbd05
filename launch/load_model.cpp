#include "launch/load_model.h"

#include <fmt/format.h>
#include <omp.h>

#include "core/error.h"
#include "data/prepared.h"
#include "trainer/checkpoint.h"
#include "trainer/parameter_files.h"
#include "trainer/run_folder.h"

namespace octavo {
namespace {

/// A section of the settings that the model was trained with.
template <typename Settings>
Settings section_of(const Checkpoint& checkpoint, std::string_view section) {
  const std::string name = (checkpoint.path() / kSettingsFile).string();
  const ConfigNode root = parse_config(checkpoint.text(kSettingsFile), name);
  const ConfigNode* node = root.find(section);
  if (node == nullptr) throw UserError(fmt::format("{}: there is no section '{}'", name, section));
  Settings settings;
  read_settings(settings, *node);
  return settings;
}

SubwordPair subwords_of(const Checkpoint& checkpoint) {
  for (const auto& [name, file] : checkpoint.files()) {
    if (name.ends_with(".model")) checkpoint.text(name);  // compares its checksum
  }
  return load_subwords(checkpoint.path());
}

}  // namespace

LoadedModel load_model(const std::filesystem::path& path, Precision precision, int threads) {
  const Checkpoint checkpoint(find_checkpoint(path));
  LoadedModel loaded{.checkpoint = checkpoint.path(),
                     .subwords = subwords_of(checkpoint),
                     .model = nullptr,
                     .parameters = nullptr};
  loaded.model = std::make_unique<const Transformer>(section_of<ModelConfig>(checkpoint, "model"),
                                                     loaded.subwords.source->vocabulary().size(),
                                                     loaded.subwords.target->vocabulary().size());
  Context ctx(Device::cpu, threads, 0);
  loaded.parameters =
      std::make_unique<Parameters>(loaded.model->table(), ctx, dtype_of(precision), false);
  load_parameters(loaded.model->table(), checkpoint.translation_weights(),
                  loaded.parameters->flat_master());
  loaded.parameters->refresh_weights(ctx);
  return loaded;
}

SearchConfig search_of_run(const std::filesystem::path& path) {
  return section_of<SearchConfig>(Checkpoint(find_checkpoint(path)), "translate");
}

int ModelUseConfig::resolved_threads() const {
  return threads.value_or(omp_get_num_procs());
}

}  // namespace octavo
