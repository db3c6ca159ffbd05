#include "launch/recipe_now.h"

#include <dnnl.h>
#include <fmt/format.h>
#include <unicode/uversion.h>

#include <array>
#include <fstream>
#include <string>

#include "comm/mpi.h"
#include "core/settings.h"
#include "core/version.h"
#include "launch/version.h"

namespace octavo {
namespace {

std::string mpi_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);  // allowed before MPI_Init
  const std::string_view version(text.data(), static_cast<std::size_t>(length));
  return std::string(version.substr(0, version.find_first_of(",\n")));
}

std::string dnnl_text() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("{}.{}.{}", v->major, v->minor, v->patch);
}

std::string processor() {
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; std::getline(cpus, line);)
    if (line.starts_with("model name"))
      return line.substr(std::min(line.find(": ") + 2, line.size()));
  return "unknown";
}

}  // namespace

Recipe recipe_now(const Experiment& experiment, const RankCounts& counts) {
  Recipe recipe;
  recipe.program = {{"octavo", std::string(kVersion)},
                    {"revision", std::string(kRevision)},
                    {"compiler", __VERSION__},
                    {"oneDNN", dnnl_text()},
                    {"ICU", U_ICU_VERSION},
                    {"MPI", mpi_version()}};
  recipe.machine = {{"processor", processor()},
                    {"ranks", std::to_string(counts.ranks)},
                    {"threads of a rank", std::to_string(counts.threads)}};
  for (const FlatSetting& setting : flatten(experiment))
    recipe.settings[setting.key] = setting.value;
  return recipe;
}

}  // namespace octavo
