#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/output.h"
#include "data/doctor/examine.h"
#include "launch/commands.h"
#include "launch/rank_threads.h"
#include "trainer/progress_text.h"

namespace octavo {
namespace {

struct DoctorOptions {
  std::vector<std::string> files, tests;
  std::string fix;
  DoctorSettings settings;
};

std::string first_lines(const Found& found) {
  std::vector<std::string> numbers;
  for (const std::int64_t line : found.first)
    if (line > 0) numbers.push_back(std::to_string(line));
  if (numbers.empty()) return "";
  const bool more = found.lines > static_cast<std::int64_t>(numbers.size());
  return fmt::format("line {}{}", fmt::join(numbers, ", "), more ? ", ..." : "");
}

std::string row(std::string_view name, std::string_view where, const Found& found) {
  return fmt::format("  {:<24}  {:<8}{:>12}  {}\n", name, where, with_commas(found.lines),
                     first_lines(found));
}

/// One row for everything that was found, then the names of what was not.
std::string findings_text(const DoctorReport& report, bool tested) {
  std::string rows;
  std::vector<std::string_view> nothing;
  for (std::size_t i = 0; i < kLineFaultNames.size(); ++i) {
    const Found &source = report.source.faults[i], &target = report.target.faults[i];
    if (source.lines > 0) rows += row(kLineFaultNames[i], "source", source);
    if (target.lines > 0) rows += row(kLineFaultNames[i], "target", target);
    if (source.lines + target.lines == 0) nothing.push_back(kLineFaultNames[i]);
  }
  for (std::size_t i = 0; i < kPairFaultNames.size(); ++i) {
    const Found& found = report.pair_faults[i];
    const bool looked_for = tested || i < static_cast<std::size_t>(PairFault::in_test);
    if (found.lines > 0) rows += row(kPairFaultNames[i], "pair", found);
    if (found.lines == 0 && looked_for) nothing.push_back(kPairFaultNames[i]);
  }
  if (!nothing.empty()) rows += fmt::format("none: {}\n", fmt::join(nothing, ", "));
  return rows;
}

std::string report_text(const DoctorFiles& files, const DoctorReport& report) {
  std::string text;
  const auto side = [&](const std::filesystem::path& file, const SideReport& s) {
    text += fmt::format("{}: {} lines{}\n", file.string(), with_commas(s.lines),
                        s.script.empty() ? "" : ", most of them in " + s.script + " letters");
  };
  side(files.source, report.source);
  side(files.target, report.target);
  if (report.source.lines != report.target.lines) {
    const auto pairs = static_cast<std::int64_t>(report.verdicts.size());
    text += fmt::format(
        "unequal: lines from {} on have no partner; if a line is missing further up, all behind it "
        "are beside a wrong one\n",
        with_commas(pairs + 1));
  }
  return text + findings_text(report, !files.tests.empty());
}

int examine_and_clean(const DoctorOptions& options) {
  if (options.files.size() != 2)
    throw UserError("doctor looks at a pair of files: octavo doctor SOURCE TARGET");
  DoctorFiles files{.source = options.files[0], .target = options.files[1], .tests = {}};
  files.tests.assign(options.tests.begin(), options.tests.end());
  DoctorSettings settings = options.settings;
  if (settings.max_length < 1) throw UserError("--max-length must be at least 1 character");
  if (!(settings.max_ratio >= 1)) throw UserError("--max-ratio must be at least 1");
  settings.threads = threads_per_rank(settings.threads, 1);

  const DoctorReport report = examine(files, settings);
  StandardOutput output;
  output.write(report_text(files, report));
  output.flush();
  if (options.fix.empty()) return 0;
  const CleanedCounts counts = clean(files, report, options.fix);
  output.write(fmt::format("{}: {} pairs kept, {} of them changed; {} dropped (doctor.jsonl)\n",
                           options.fix, with_commas(counts.kept), with_commas(counts.changed),
                           with_commas(counts.dropped)));
  output.flush();
  return 0;
}

}  // namespace

Command doctor_command() {
  auto options = std::make_shared<DoctorOptions>();
  Command c;
  c.name = "doctor";
  c.summary = "what is wrong with a parallel corpus; cleans it";
  c.usage = "SOURCE TARGET [options]";
  c.options.add_options()  //
      ("files", po::value(&options->files)->required()->value_name("FILE"),
       "two text files, line by line each other's translations; may be gzip")  //
      ("test", po::value(&options->tests)->multitoken()->composing()->value_name("FILES"),
       "test sets of either language: looks for their lines, and for what is nearly the same")  //
      ("fix", po::value(&options->fix)->value_name("DIR"),
       "writes the cleaned pair there, and a log of every dropped or changed pair")  //
      ("max-length", po::value(&options->settings.max_length)->default_value(2000)->value_name("N"),
       "longest line, in characters")  //
      ("max-ratio", po::value(&options->settings.max_ratio)->default_value(3)->value_name("X"),
       "of the two sides' characters, 10 added to each")  //
      ("threads", po::value(&options->settings.threads)->default_value(0)->value_name("N"),
       "0: OMP_NUM_THREADS, else as many as there are processors");
  c.positional.add("files", -1);
  c.run = [options](const po::variables_map&) { return examine_and_clean(*options); };
  return c;
}

}  // namespace octavo
