#include "trainer/model_settings.h"

#include <fmt/format.h>

namespace octavo {

namespace {

std::string different_key(const ConfigNode& a, const ConfigNode& b, const std::string& path) {
  if (a.kind != b.kind || a.text != b.text || a.children.size() != b.children.size()) return path;
  for (std::size_t i = 0; i < a.children.size(); ++i) {
    const ConfigNode& child = a.children[i];
    if (child.key.ends_with("dropout") || child.key == "max_positions") continue;
    const bool is_map = a.kind == ConfigNode::Kind::map;
    std::string name = is_map ? path + "." + child.key : fmt::format("{}[{}]", path, i);
    const ConfigNode* other = is_map ? b.find(child.key) : &b.children[i];
    if (other == nullptr) return name;
    if (std::string key = different_key(child, *other, name); !key.empty()) return key;
  }
  return "";
}

ConfigNode model_of(const ConfigNode& root) {
  const ConfigNode* model = root.find("model");
  return model == nullptr ? ConfigNode{} : *model;
}

}  // namespace

ConfigNode settings_of(const Checkpoint& checkpoint) {
  return parse_config(checkpoint.text(kSettingsFile), (checkpoint.path() / kSettingsFile).string());
}

std::string different_model_setting(const ConfigNode& a, const ConfigNode& b) {
  return different_key(model_of(a), model_of(b), "model");
}

}  // namespace octavo
