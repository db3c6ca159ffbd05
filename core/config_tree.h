#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo {

/// One value of a settings file as written: nothing is interpreted yet, so that `010` and `no` stay
/// what the user typed. settings.h turns a tree of these into structs.
struct ConfigNode {
  enum class Kind { null, scalar, list, map };

  Kind kind = Kind::null;
  std::string origin;                ///< for messages: "configs/a.yaml:4" or "--set a.b=5"
  std::string key;                   ///< in a map
  std::string text;                  ///< of a scalar
  bool quoted = false;               ///< of a scalar: quotes or a block ("|", ">")
  std::vector<ConfigNode> children;  ///< of a list or a map, in order

  /// The value of a map's key, or null.
  const ConfigNode* find(std::string_view name) const;
};

/// Parses the small part of YAML that settings need (docs/settings.md). The result is a map or, for
/// an empty text, null.
/// @param name  of the file, for messages.
/// @throws UserError  not YAML, not UTF-8, repeated keys, anchors, tags, several documents.
ConfigNode parse_config(const std::string& text, const std::string& name);

/// Applies "a.b.c=VALUE" (the argument of --set) to a tree. VALUE is YAML: a scalar or a list.
/// @throws UserError  no '=', VALUE is not YAML or is a map, a.b is not a section.
void set_value(ConfigNode& root, const std::string& assignment);

}  // namespace octavo
