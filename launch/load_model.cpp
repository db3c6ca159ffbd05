#include "launch/load_model.h"

#include <fmt/format.h>

#include <future>
#include <map>
#include <set>
#include <vector>

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

/// The model of a checkpoint, its parameters not filled yet.
LoadedModel empty_model(const Checkpoint& checkpoint, Precision precision, Context& ctx) {
  LoadedModel loaded{.checkpoint = checkpoint.path(),
                     .subwords = subwords_of(checkpoint),
                     .model = nullptr,
                     .parameters = nullptr};
  loaded.model = std::make_unique<const Transformer>(model_config(checkpoint),
                                                     loaded.subwords.source->vocabulary().size(),
                                                     loaded.subwords.target->vocabulary().size());
  loaded.parameters =
      std::make_unique<Parameters>(loaded.model->table(), ctx, dtype_of(precision), false);
  return loaded;
}

/// Matrices that nothing but products reads, where they can be read from the file itself.
std::map<int, Tensor> matrices_in_place(const LoadedModel& loaded, const SafetensorsFile& file) {
  std::map<int, Tensor> found;
  if (loaded.parameters->compute_type() != DType::f32) return found;
  const ParameterTable& table = loaded.model->table();
  for (const ParameterSpan& span : loaded.model->product_weights()) {
    const Parameter& first = table.parameters()[static_cast<std::size_t>(span.first)];
    if (first.init == Init::embedding) continue;
    const Tensor matrix = matrix_in_place(table, file, span);
    if (matrix.present()) found[span.first] = matrix;
  }
  return found;
}

void fill_packed(const LoadedModel& loaded, const SafetensorsFile& file, WeightFormat format,
                 Context& ctx) {
  const std::vector<ParameterSpan> weights = loaded.model->product_weights();
  const std::map<int, Tensor> in_place = matrices_in_place(loaded, file);
  std::set<int> left_out;
  for (const ParameterSpan& span : weights) {
    if (!in_place.contains(span.first)) continue;
    for (int i = 0; i < span.count; ++i) left_out.insert(span.first + i);
  }
  load_parameters(loaded.model->table(), file, loaded.parameters->flat_master(), "", left_out);
  loaded.parameters->refresh_weights(ctx);
  loaded.parameters->pack(ctx, weights, format, in_place);
}

}  // namespace

LoadedModel load_model(const std::filesystem::path& path, Precision precision, int threads) {
  const Checkpoint checkpoint(find_checkpoint(path));
  Context ctx(Device::cpu, threads, 0);
  LoadedModel loaded = empty_model(checkpoint, precision, ctx);
  load_parameters(loaded.model->table(), checkpoint.translation_weights(),
                  loaded.parameters->flat_master());
  loaded.parameters->refresh_weights(ctx);
  return loaded;
}

LoadedModel load_packed_model(const std::filesystem::path& path, Precision precision,
                              WeightFormat format, int threads) {
  const Checkpoint checkpoint(find_checkpoint(path));
  const std::string_view name = checkpoint.translation_weights_file();
  try {
    const SafetensorsFile file = checkpoint.unverified_tensors(name);
    std::future<void> verified =
        std::async(std::launch::async, [&] { checkpoint.verify(name, file.content()); });
    Context ctx(Device::cpu, threads, 0);
    LoadedModel loaded = empty_model(checkpoint, precision, ctx);
    fill_packed(loaded, file, format, ctx);
    verified.get();
    return loaded;
  } catch (const UserError&) {
    checkpoint.verify(name);  // if the file is damaged, that is the cause of everything else
    throw;
  }
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
