#include "launch/load_model.h"

#include <fmt/format.h>

#include "core/error.h"
#include "data/prepared.h"
#include "launch/rank_threads.h"
#include "trainer/checkpoint.h"
#include "trainer/model_settings.h"
#include "trainer/parameter_files.h"
#include "trainer/run_folder.h"

namespace octavo {
namespace {

ModelConfig model_config(const Checkpoint& checkpoint) {
  const ConfigNode root = settings_of(checkpoint);
  const ConfigNode* section = root.find("model");
  if (section == nullptr) {
    throw UserError(
        fmt::format("{}: there is no section 'model', so the shape of the model is unknown",
                    (checkpoint.path() / kSettingsFile).string()));
  }
  ModelConfig config;
  read_settings(config, *section);
  return config;
}

SubwordPair subwords_of(const Checkpoint& checkpoint) {
  for (const auto& [name, file] : checkpoint.files()) {
    if (name.ends_with(".model")) checkpoint.text(name);  // compares its checksum
  }
  return load_subwords(checkpoint.path(), checkpoint.has(subword_files(true).front()));
}

}  // namespace

LoadedModel load_model(const std::filesystem::path& path, Precision precision, int threads) {
  const Checkpoint checkpoint(find_checkpoint(path));
  LoadedModel loaded{.checkpoint = checkpoint.path(),
                     .subwords = subwords_of(checkpoint),
                     .model = nullptr,
                     .parameters = nullptr};
  loaded.model = std::make_unique<const Transformer>(model_config(checkpoint),
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

void pack_weights(const LoadedModel& loaded, WeightFormat format) {
  Context ctx(Device::cpu, 1, 0);
  loaded.parameters->pack(ctx, loaded.model->product_weights(), format);
}

SearchConfig search_of_run(const std::filesystem::path& path) {
  const ConfigNode root = settings_of(Checkpoint(find_checkpoint(path)));
  SearchConfig search;
  if (const ConfigNode* section = root.find("translate")) read_settings(search, *section);
  return search;
}

int ModelUseConfig::resolved_threads() const {
  return threads_per_rank(threads.value_or(0), 1);
}

}  // namespace octavo
