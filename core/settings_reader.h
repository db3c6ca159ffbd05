#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/config_tree.h"
#include "core/setting_rules.h"
#include "core/setting_values.h"

namespace octavo {

/// Fills fields from one section of the tree.
class SettingsReader : public RuleWords {
 public:
  /// What the readers of all sections share.
  struct State {
    std::vector<std::string> all_keys;  ///< of the whole configuration, to guess at wrong names
    std::string missing;                ///< what to say of the first required setting not given
  };

  /// @param section  a map or null. Its origin is named when a required setting is missing.
  /// @param path     of the section, "" at the top.
  SettingsReader(const ConfigNode& section, std::string path, State& state);

  template <typename T, typename... Rules>
  void setting(std::string_view name, T& field, std::string_view help, const Rules&... given) {
    const SettingRules rules = merge_rules(given...);
    const ConfigNode* node = take(name, help, rules);
    if constexpr (kIsStructList<T>) {
      if (node != nullptr) read_list(*node, name, field, rules);
    } else {
      if (node != nullptr)
        accept(*node, name, SettingValue<T>::parse(*node, rules, field), accepted_values<T>(rules),
               rules);
      else
        accept_default(name, SettingValue<T>::allowed(field, rules));
      seen_.back().value = SettingValue<T>::format(field, rules);
    }
  }

  template <typename Section, typename... Rules>
  void section(std::string_view name, Section& nested, std::string_view, const Rules&...) {
    SettingsReader reader(take_section(name), join_key(path_, name), state_);
    nested.describe(reader);
    reader.finish();
  }

  void check(bool holds, std::string_view name, const std::string& requirement) const;

  /// @throws UserError  the section holds a name that describe() did not ask for.
  void finish() const;

 private:
  struct Seen {
    std::string name, origin, value;
  };

  template <typename T>
  void read_list(const ConfigNode& node, std::string_view name, std::vector<T>& list,
                 const SettingRules& rules) {
    expect_list(node, name, rules);
    list.clear();
    for (const ConfigNode& child : node.children) {
      T element{};
      const std::string path = join_key(path_, name) + "[" + std::to_string(list.size()) + "]";
      SettingsReader reader(child, path, state_);
      element.describe(reader);
      reader.finish();
      list.push_back(std::move(element));
    }
  }

  const ConfigNode* take(std::string_view name, std::string_view help, const SettingRules& rules);
  const ConfigNode& take_section(std::string_view name);
  void accept(const ConfigNode& node, std::string_view name, ParseResult result,
              const std::string& accepted, const SettingRules& rules) const;
  void accept_default(std::string_view name, bool allowed) const;
  void expect_list(const ConfigNode& node, std::string_view name, const SettingRules& rules) const;

  const ConfigNode& section_;
  std::string path_;
  State& state_;
  std::vector<Seen> seen_;
  ConfigNode absent_;  // stands for sections that the file does not mention
};

}  // namespace octavo
