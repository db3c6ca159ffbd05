#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/lines.h"
#include "data/doctor/examine.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLogName = "doctor.jsonl";

fs::path cleaned_path(const fs::path& folder, const fs::path& file) {
  fs::path name = file.filename();
  if (name.extension() == ".gz") name = name.stem();
  return folder / name;
}

void check_paths(const DoctorFiles& files, const DoctorReport& report, const fs::path& folder) {
  if (report.source.lines != report.target.lines) {
    throw UserError(fmt::format(
        "{} has {} lines but {} has {}: which belong together can't be known, so there is nothing "
        "to clean. Find where a line is missing, or get the files again.",
        files.source.string(), report.source.lines, files.target.string(), report.target.lines));
  }
  const fs::path source = cleaned_path(folder, files.source),
                 target = cleaned_path(folder, files.target);
  if (source == target) {
    throw UserError(
        fmt::format("both files would become {}: give them different names", source.string()));
  }
  for (const auto& [cleaned, file] : {std::pair(source, files.source), {target, files.target}}) {
    std::error_code no_such_file;
    if (fs::equivalent(cleaned, file, no_such_file)) {
      throw UserError(
          fmt::format("--fix {} would replace {}, which is being read; name another folder",
                      folder.string(), file.string()));
    }
  }
}

template <std::size_t N>
nlohmann::ordered_json names_of(std::uint8_t bits, const std::array<std::string_view, N>& names) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < N; ++i)
    if ((bits >> i & 1U) != 0) list.push_back(names[i]);
  return list;
}

std::string log_line(std::int64_t line, const PairVerdict& verdict, std::string_view source,
                     std::string_view target) {
  return nlohmann::ordered_json{{"line", line},
                                {"action", verdict.drops() ? "dropped" : "changed"},
                                {"source", names_of(verdict.source, kLineFaultNames)},
                                {"target", names_of(verdict.target, kLineFaultNames)},
                                {"pair", names_of(verdict.pair, kPairFaultNames)},
                                {"source_text", replace_invalid_utf8(source)},
                                {"target_text", replace_invalid_utf8(target)}}
             .dump() +
         "\n";
}

}  // namespace

CleanedCounts clean(const DoctorFiles& files, const DoctorReport& report, const fs::path& folder) {
  check_paths(files, report, folder);
  std::error_code refused;
  fs::create_directories(folder, refused);
  if (refused) throw UserError("cannot make " + system_reason(folder.string(), refused.value()));

  LineReader sources(files.source), targets(files.target);
  AtomicFile cleaned_source(cleaned_path(folder, files.source));
  AtomicFile cleaned_target(cleaned_path(folder, files.target));
  AtomicFile log(folder / kLogName);
  CleanedCounts counts;
  const auto read_pair = [&] { return std::pair(sources.next(), targets.next()); };
  for (const PairVerdict& verdict : report.verdicts) {
    const auto [source, target] = read_pair();
    if (!source || !target) break;
    const bool changes = (verdict.source | verdict.target) != 0;
    if (verdict.drops() || changes)
      log.write(log_line(sources.line_number(), verdict, *source, *target));
    if (verdict.drops()) {
      ++counts.dropped;
      continue;
    }
    cleaned_source.write((verdict.source != 0 ? mended(*source) : std::string(*source)) + "\n");
    cleaned_target.write((verdict.target != 0 ? mended(*target) : std::string(*target)) + "\n");
    ++counts.kept;
    if (changes) ++counts.changed;
  }
  const auto [more_source, more_target] = read_pair();
  if (more_source || more_target ||
      counts.kept + counts.dropped != static_cast<std::int64_t>(report.verdicts.size())) {
    throw UserError(fmt::format("{} or {} changed while it was read; start again",
                                files.source.string(), files.target.string()));
  }
  cleaned_source.commit();
  cleaned_target.commit();
  log.commit();
  return counts;
}

}  // namespace octavo
