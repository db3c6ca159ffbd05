#include "trainer/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "core/error.h"
#include "core/file.h"
#include "core/version.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view kManifestFile = "manifest.json";
constexpr std::string_view kUnfinished = ".octavo.tmp";  // reserved: nobody's folder ends like this
constexpr std::string_view kFormat = "octavo checkpoint";
constexpr int kFormatVersion = 1;

/// Without "." and a final slash, so that something can be appended to the name.
fs::path plain_name(const fs::path& folder) {
  const fs::path normal = folder.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

fs::path parent_of(const fs::path& folder) {
  return folder.has_parent_path() ? folder.parent_path() : fs::path(".");
}

/// Where a checkpoint is made, and where it goes before it is removed.
fs::path unfinished_name(const fs::path& folder) {
  fs::path path = folder;
  return path += kUnfinished;
}

void remove_tree(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) throw UserError(fmt::format("cannot remove {}: {}", folder.string(), error.message()));
}

/// A file's name that can't lead out of its folder.
bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name != kManifestFile &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

Checkpoint::File commit(AtomicFile& file) {
  file.commit();
  return {.size = file.size(), .hash = file.hash()};
}

std::string manifest_text(const std::map<std::string, Checkpoint::File>& files) {
  Json manifest;
  manifest["format"] = kFormat;
  manifest["version"] = kFormatVersion;
  manifest["program"] = fmt::format("octavo {}", kVersion);
  manifest["files"] = Json::object();
  for (const auto& [name, file] : files)
    manifest["files"][name] = {{"size", file.size}, {"xxh3", file.hash}};
  return manifest.dump(2) + "\n";
}

/// Every file, the manifest last.
void write_files(const fs::path& folder, const CheckpointContents& contents) {
  std::map<std::string, Checkpoint::File> files;
  const auto begin = [&](const std::string& name) {
    expect(is_plain_file_name(name) && !files.contains(name),
           "write_checkpoint: a file's name is impossible or comes twice");
    return AtomicFile(folder / name);
  };
  for (const auto& [name, tensors] : contents.tensors) {
    AtomicFile file = begin(name);
    write_safetensors(file, tensors, contents.remarks);
    files[name] = commit(file);
  }
  for (const auto& [name, text] : contents.texts) {
    AtomicFile file = begin(name);
    file.write(text);
    files[name] = commit(file);
  }
  write_file(folder / kManifestFile, manifest_text(files));
}

/// Moves the finished checkpoint to its place. What was there is then under the unfinished name.
void publish(const fs::path& unfinished, const fs::path& folder) {
  if (::rename(unfinished.c_str(), folder.c_str()) != 0) {
    if (errno != ENOTEMPTY && errno != EEXIST)
      throw UserError("cannot make " + system_reason(folder.string(), errno));
    if (::renameat2(AT_FDCWD, unfinished.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) != 0)
      throw UserError(fmt::format("cannot replace {}; remove the old one",
                                  system_reason(folder.string(), errno)));
  }
  sync_folder(parent_of(folder));
}

}  // namespace

void write_checkpoint(const fs::path& path, const CheckpointContents& contents) {
  const fs::path folder = plain_name(path), unfinished = unfinished_name(folder);
  try {
    remove_tree(unfinished);
    std::error_code error;
    if (!fs::create_directory(unfinished, error) || error)
      throw UserError(fmt::format("cannot make {}: {}", unfinished.string(), error.message()));
    write_files(unfinished, contents);
    publish(unfinished, folder);
  } catch (const UserError& e) {
    std::error_code error;
    fs::remove_all(unfinished, error);
    if (error)
      spdlog::error("[trainer] cannot remove {}: {}", unfinished.string(), error.message());
    throw UserError(
        fmt::format("cannot save the checkpoint {}: {}. Checkpoints saved before are "
                    "untouched. Make room or mend the folder, and start again from them.",
                    folder.string(), e.what()));
  }
  remove_tree(unfinished);  // an older checkpoint of that name
}

void remove_checkpoint(const fs::path& path) {
  const fs::path folder = plain_name(path), doomed = unfinished_name(folder);
  remove_tree(doomed);
  if (::rename(folder.c_str(), doomed.c_str()) != 0)
    throw UserError("cannot remove " + system_reason(folder.string(), errno));
  // The new name must reach the disk before any file goes.
  sync_folder(parent_of(folder));
  remove_tree(doomed);
}

void remove_leftovers(const fs::path& folder) {
  std::error_code error;
  std::set<fs::path> found;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error))
    if (i->path().filename().string().ends_with(kUnfinished)) found.insert(i->path());
  if (error) throw UserError(fmt::format("cannot list {}: {}", folder.string(), error.message()));
  for (const fs::path& path : found) {
    spdlog::info("[trainer] removing {}, left by a run that was stopped", path.string());
    remove_tree(path);
  }
}

bool Checkpoint::is_there(const fs::path& folder) {
  std::error_code ignored;  // what can't be looked at is not there
  return fs::is_regular_file(folder / kManifestFile, ignored);
}

Checkpoint::Checkpoint(const fs::path& folder) : folder_(folder) {
  if (!is_there(folder))
    throw UserError(
        fmt::format("{} is no checkpoint: it has no {}. A checkpoint is a folder such "
                    "as RUN/checkpoints/step_00001000.",
                    folder.string(), kManifestFile));
  try {
    read_manifest(read_file(folder / kManifestFile));
  } catch (const Json::exception& e) {
    damaged(fmt::format("{}: {}", kManifestFile, json_reason(e)));
  }
  for (const auto& [name, file] : files_) {
    std::error_code error;
    const auto size = fs::file_size(folder / name, error);
    if (error) damaged(fmt::format("{}: {}", name, error.message()));
    if (size != static_cast<std::uintmax_t>(file.size))
      damaged(fmt::format("{} has {} bytes; it had {} when it was written", name, size, file.size));
  }
}

void Checkpoint::damaged(const std::string& what) const {
  throw UserError(fmt::format("checkpoint {} is damaged: {}. Move it away and use another one.",
                              folder_.string(), what));
}

void Checkpoint::read_manifest(const std::string& text) {
  const Json manifest = Json::parse(text);
  if (manifest.at("format") != kFormat) damaged(fmt::format("{}: another format", kManifestFile));
  if (manifest.at("version") != kFormatVersion)
    throw UserError(
        fmt::format("checkpoint {} has version {} of the format; this octavo reads "
                    "version {}. Use the octavo that wrote it.",
                    folder_.string(), manifest.at("version").dump(), kFormatVersion));
  program_ = manifest.at("program").get<std::string>();
  for (const auto& [name, file] : manifest.at("files").items()) {
    const Json& size = file.at("size");
    if (!is_plain_file_name(name) || !size.is_number_unsigned())
      damaged(fmt::format("{}: a bad entry for a file", kManifestFile));
    files_[name] = {.size = size.get<std::int64_t>(), .hash = file.at("xxh3").get<std::string>()};
  }
}

const Checkpoint::File& Checkpoint::file(std::string_view name) const {
  const auto found = files_.find(name);
  if (found == files_.end())
    throw UserError(fmt::format("checkpoint {} has no {}", folder_.string(), name));
  return found->second;
}

void Checkpoint::check_hash(std::string_view name, const std::string& found) const {
  if (found != file(name).hash)
    damaged(fmt::format("{} has other content (hash {}) than when it was written ({})", name, found,
                        file(name).hash));
}

SafetensorsFile Checkpoint::tensors(std::string_view name) const {
  verify(name);
  return unverified_tensors(name);
}

SafetensorsFile Checkpoint::unverified_tensors(std::string_view name) const {
  file(name);
  return SafetensorsFile(folder_ / name);
}

std::string Checkpoint::text(std::string_view name) const {
  file(name);
  std::string text = read_file(folder_ / name);
  check_hash(name, hash_bytes(text));
  return text;
}

TrainingState Checkpoint::state() const {
  return parse_training_state(text(kStateFile), (folder_ / kStateFile).string());
}

SafetensorsFile Checkpoint::translation_weights() const {
  return tensors(translation_weights_file());
}

std::string_view Checkpoint::translation_weights_file() const {
  return has(kEmaFile) ? kEmaFile : kWeightsFile;
}

void Checkpoint::verify() const {
  for (const auto& [name, file] : files_) verify(name);
}

void Checkpoint::verify(std::string_view name) const {
  file(name);
  check_hash(name, hash_file(folder_ / name));
}

void Checkpoint::verify(std::string_view name, std::span<const std::byte> content) const {
  const auto* first = reinterpret_cast<const char*>(content.data());
  check_hash(name, hash_bytes({first, content.size()}));
}

void check_hashes(const fs::path& checkpoint, const std::map<std::string, std::string>& saved,
                  const std::map<std::string, std::string>& now) {
  std::string different;
  for (const auto& [name, hash] : saved) {
    const auto found = now.find(name);
    if (found == now.end())
      different += fmt::format(" {} is gone;", name);
    else if (found->second != hash)
      different += fmt::format(" {} has hash {} and had {};", name, found->second, hash);
  }
  for (const auto& [name, hash] : now)
    if (!saved.contains(name)) different += fmt::format(" {} is new;", name);
  if (different.empty()) return;
  different.back() = '.';
  throw UserError(fmt::format(
      "{} was made with other data or another vocabulary:{} Bring back what it was made "
      "with, or begin a new run from its weights (trainer.init_from).",
      checkpoint.string(), different));
}

}  // namespace octavo
