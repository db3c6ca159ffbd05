// The table of rooms: who may include whom. Read from the include lines of every source file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/lines.h"
#include "tests/testkit/temp_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

const std::map<std::string, Names> kMayInclude{
    {"core", {}},
    {"data", {"core"}},
    {"comm", {"core"}},
    {"model", {"core"}},
    {"eval", {"core"}},
    {"translate", {"core", "data", "model"}},
    {"trainer", {"core", "data", "comm", "model", "translate", "eval"}},
    {"configs", {"core", "data", "comm", "model", "translate", "trainer", "eval"}},
    {"launch", {"core", "data", "comm", "model", "translate", "trainer", "eval", "configs"}}};

bool contains(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// What is wrong with one line of a file in `folder`, part of `room`; empty if nothing.
std::string fault_of_line(const std::string& room, const fs::path& folder, std::string_view line) {
  constexpr std::string_view kBlank = " \t";
  const auto skip = [&](std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
    return text;
  };
  line = skip(line);
  if (!line.starts_with('#')) return "";
  line = skip(line.substr(1));
  if (!line.starts_with("include")) return "";
  line = skip(line.substr(std::string_view("include").size()));
  const bool quoted = line.starts_with('"');
  if (!quoted && !line.starts_with('<')) return "an include that is neither \"...\" nor <...>";
  const std::string path(line.substr(1, line.find(quoted ? '"' : '>', 1) - 1));
  const std::string target = path.substr(0, path.find('/'));
  if (target == "tests") return path + ": tests are for tests";
  if (quoted && fs::exists(folder / path)) return path + ": include it by its path from the root";
  if (!kMayInclude.contains(target)) return "";
  if (target == room || contains(kMayInclude.at(room), target)) return "";
  return path + ": " + room + " may not include " + target;
}

/// "FILE:LINE: fault" for every include under root that the table does not allow.
Names faults_under(const fs::path& root) {
  const Names suffixes{".h", ".cpp", ".cu", ".cuh"};
  Names faults;
  for (const auto& [room, allowed] : kMayInclude) {
    if (!fs::exists(root / room)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / room)) {
      if (!contains(suffixes, entry.path().extension())) continue;
      LineReader reader(entry.path());
      while (const auto line = reader.next()) {
        const std::string fault = fault_of_line(room, entry.path().parent_path(), *line);
        if (!fault.empty())
          faults.push_back(fs::relative(entry.path(), root).string() + ":" +
                           std::to_string(reader.line_number()) + ": " + fault);
      }
    }
  }
  return faults;
}

TEST(Dependencies, FollowTheTable) {
  EXPECT_THAT(faults_under(OCTAVO_SOURCE_DIR), testing::IsEmpty());
  // Guards against looking in the wrong place.
  EXPECT_TRUE(fs::exists(fs::path(OCTAVO_SOURCE_DIR) / "core" / "lines.h"));
}

TEST(Dependencies, OfAFabricatedTreeAreRefused) {
  const testkit::TempFolder root;
  for (const char* folder : {"core", "data", "model/ops", "launch", "elsewhere"})
    fs::create_directories(root / folder);
  root.write("core/a.h", "#pragma once\n#include <vector>\n#include \"core/b.h\"\n");
  root.write("core/b.cpp", "// text\n#include \"model/ops/x.h\"\n");
  root.write("data/c.cpp", "#include \"core/a.h\"\n  #  include <model/ops/x.h>\n");
  root.write("model/ops/x.h", "#include \"hwy/highway.h\"\n");
  root.write("model/ops/x.cu", "#include \"x.h\"\n#include \"tests/testkit/child.h\"\n");
  root.write("launch/main.cpp", "#include \"data/c.h\"\n#include \"model/ops/x.h\"\n");
  root.write("launch/readme.md", "#include \"x.h\"\n");
  root.write("elsewhere/z.cpp", "#include \"launch/y.h\"\n");
  EXPECT_THAT(faults_under(root.path()),
              testing::UnorderedElementsAre(
                  "core/b.cpp:2: model/ops/x.h: core may not include model",
                  "data/c.cpp:2: model/ops/x.h: data may not include model",
                  "model/ops/x.cu:1: x.h: include it by its path from the root",
                  "model/ops/x.cu:2: tests/testkit/child.h: tests are for tests"));
}

}  // namespace
}  // namespace octavo
