#include "trainer/averaging.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <string>
#include <system_error>

#include "core/error.h"
#include "trainer/checkpoint.h"
#include "trainer/model_settings.h"
#include "trainer/progress_text.h"
#include "trainer/run_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

/// What each checkpoint must share with the first one besides its weights' names and shapes.
bool is_compared(const std::string& file) {
  return !file.ends_with(".safetensors") && file != kSettingsFile && file != kStateFile;
}

[[noreturn]] void refuse(const Checkpoint& a, const Checkpoint& b, const std::string& what) {
  throw UserError(fmt::format("{} and {} can't be averaged: {}. Average checkpoints of one run.",
                              a.path().string(), b.path().string(), what));
}

void check_alike(const Checkpoint& a, const Checkpoint& b) {
  if (fs::equivalent(a.path(), b.path())) refuse(a, b, "they are the same");
  if (a.has(kEmaFile) != b.has(kEmaFile))
    refuse(a, b, "only one of them has running averages of weights");
  for (const auto& [file, record] : a.files()) {
    if (!is_compared(file)) continue;
    if (!b.has(file)) refuse(a, b, fmt::format("only the first has {}", file));
    if (b.files().find(file)->second.hash != record.hash)
      refuse(a, b, fmt::format("their {} differ", file));
  }
  for (const auto& [file, record] : b.files())
    if (is_compared(file) && !a.has(file))
      refuse(a, b, fmt::format("only the second has {}", file));
  if (const std::string key = different_model_setting(settings_of(a), settings_of(b)); !key.empty())
    refuse(a, b, fmt::format("the setting {} differs", key));
}

void check_shapes(const SafetensorsFile& a, const SafetensorsFile& b) {
  const auto fail = [&](const std::string& what) {
    throw UserError(
        fmt::format("{} and {} can't be averaged: {}", a.path().string(), b.path().string(), what));
  };
  for (const SafetensorsFile::Entry& entry : a.entries()) {
    const SafetensorsFile::Entry* other = b.find(entry.name);
    if (other == nullptr) fail(fmt::format("only the first has {}", entry.name));
    if (other->shape != entry.shape || other->type != entry.type)
      fail(fmt::format("{} is {} {} in one and {} {} in the other", entry.name, name_of(entry.type),
                       shape_text(entry.shape), name_of(other->type), shape_text(other->shape)));
  }
  if (a.entries().size() != b.entries().size()) fail("the second has more weights");
}

template <typename T>
void add(std::span<const std::byte> bytes, std::vector<double>& sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    sums[i] += static_cast<double>(value);
  }
}

template <typename T>
std::vector<std::byte> means(const std::vector<double>& sums, std::size_t count) {
  std::vector<std::byte> out(sums.size() * sizeof(T));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const T mean = static_cast<T>(sums[i] / static_cast<double>(count));
    std::memcpy(out.data() + i * sizeof(T), &mean, sizeof(T));
  }
  return out;
}

/// The mean of one tensor of all files.
std::vector<std::byte> mean_of(const std::deque<SafetensorsFile>& files,
                               const SafetensorsFile::Entry& entry) {
  std::vector<double> sums(static_cast<std::size_t>(entry.end - entry.begin) /
                           bytes_of(entry.type));
  for (const SafetensorsFile& file : files) {
    const std::span<const std::byte> bytes = file.bytes(*file.find(entry.name));
    if (entry.type == DType::f32)
      add<float>(bytes, sums);
    else if (entry.type == DType::f64)
      add<double>(bytes, sums);
    else
      throw UserError(fmt::format("{} of {} holds {}; only f32 and f64 can be averaged", entry.name,
                                  file.path().string(), name_of(entry.type)));
    for (const double sum : sums)
      if (!std::isfinite(sum))
        throw UserError(fmt::format("{} of {} has weights that are not finite; leave it out",
                                    entry.name, file.path().string()));
  }
  return entry.type == DType::f64 ? means<double>(sums, files.size())
                                  : means<float>(sums, files.size());
}

}  // namespace

std::vector<fs::path> last_checkpoints(const fs::path& run, std::int64_t count) {
  if (!fs::is_directory(checkpoints_folder(run)))
    throw UserError(
        fmt::format("there is no run {} (a folder with a folder 'checkpoints')", run.string()));
  std::vector<StepCheckpoint> all = list_checkpoints(run);
  const auto there = static_cast<std::int64_t>(all.size());
  if (there < count)
    throw UserError(
        fmt::format("the run {} has {}; {} can't be averaged. Ask for "
                    "fewer, or train on and keep more (trainer.checkpoints.keep_last).",
                    run.string(), counted(there, "checkpoint"), count));
  std::vector<fs::path> paths;
  for (std::int64_t i = there - count; i < there; ++i)
    paths.push_back(all[static_cast<std::size_t>(i)].path);
  return paths;
}

void average_checkpoints(std::span<const fs::path> checkpoints, const fs::path& output) {
  expect(!checkpoints.empty(), "average_checkpoints: nothing to average");
  std::error_code error;
  if (fs::exists(fs::symlink_status(output, error)))
    throw UserError(
        fmt::format("{} is there already; remove it or give another folder", output.string()));
  if (fs::weakly_canonical(output).parent_path().filename() == "checkpoints")
    throw UserError(fmt::format("{} would lie among a run's own checkpoints; give another folder",
                                output.string()));
  std::vector<Checkpoint> opened;
  for (const fs::path& path : checkpoints) opened.emplace_back(path);
  std::deque<SafetensorsFile> files;  // they can't be moved about
  std::string names;
  for (std::size_t i = 0; i < opened.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) check_alike(opened[k], opened[i]);
    files.push_back(opened[i].translation_weights());
    check_shapes(files.front(), files.back());
    spdlog::info("[trainer] averaging {}", files.back().path().string());
    names += (i == 0 ? "" : ", ") + files.back().path().string();
  }

  CheckpointContents contents;
  const Checkpoint& last = opened.back();
  for (const auto& [file, record] : last.files())
    if (is_compared(file) || file == kSettingsFile) contents.texts[file] = last.text(file);
  contents.remarks["average of"] = names;
  std::deque<std::vector<std::byte>> means;
  for (const SafetensorsFile::Entry& entry : files.front().entries()) {
    means.push_back(mean_of(files, entry));
    contents.tensors[std::string(kWeightsFile)].push_back(
        {entry.name, entry.type, entry.shape, means.back()});
  }
  write_checkpoint(output, contents);
  spdlog::info("[trainer] the mean of {} checkpoints is in {}", opened.size(), output.string());
}

}  // namespace octavo
