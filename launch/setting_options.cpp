#include "launch/setting_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace octavo {
namespace {

std::string option_name(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

/// What stands behind the option: the words it takes, if it takes words.
std::string value_name(const std::string& accepted) {
  constexpr std::string_view kWords = "one of ";
  if (!accepted.starts_with(kWords)) return "VALUE";
  std::string words = accepted.substr(kWords.size());
  for (std::size_t comma; (comma = words.find(", ")) != std::string::npos;) {
    words.replace(comma, 2, "|");
  }
  return words;
}

}  // namespace

void add_options(po::options_description& options, std::span<const SettingHelp> settings) {
  for (const SettingHelp& s : settings) {
    options.add_options()(option_name(s.key).c_str(),
                          po::value<std::string>()->value_name(value_name(s.accepted)),
                          fmt::format("{} [{}]", s.help, s.value).c_str());
  }
}

ConfigNode given_options(const po::variables_map& given, std::span<const SettingHelp> settings) {
  ConfigNode root;
  root.kind = ConfigNode::Kind::map;
  root.origin = "command line";
  for (const SettingHelp& s : settings) {
    const std::string option = option_name(s.key);
    if (given.count(option) == 0) continue;
    ConfigNode node;
    node.kind = ConfigNode::Kind::scalar;
    node.origin = "--" + option;
    node.key = s.key;
    node.text = given[option].as<std::string>();
    root.children.push_back(std::move(node));
  }
  return root;
}

}  // namespace octavo
