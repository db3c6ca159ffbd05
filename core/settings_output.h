#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/setting_rules.h"
#include "core/setting_values.h"

/// The visitors of describe() that show settings; core/settings.h tells how they are used.
namespace octavo {

/// A setting and its value, for comparing two configurations.
struct FlatSetting {
  std::string key;    ///< "optimizer.learning_rate", "data.train[0].source"
  std::string value;  ///< as in resolved.yaml
  bool may_change = false;
  bool operator==(const FlatSetting&) const = default;
};

/// A setting as help shows it.
struct SettingHelp {
  std::string key;       ///< "optimizer.learning_rate", "data.train[].source"
  std::string value;     ///< the default, as in YAML; "(required)" if there is none
  std::string accepted;  ///< "a number between 0 and 1, ends excluded"
  std::string help;
  bool may_change = false;
};

/// `text` broken between words into lines of at most 100 columns, each with `prefix` and '\n'.
std::string wrapped(std::string_view text, std::string_view prefix);

/// What lister, writer and flattener share: no checks, and may_change() handed down.
class SettingsOutput : public RuleWords {
 public:
  void check(bool, std::string_view, const std::string&) const {}
};

/// Lists values. Lists of structs give one key per element and field.
class SettingsFlattener : public SettingsOutput {
 public:
  explicit SettingsFlattener(std::vector<FlatSetting>& out, std::string path = "",
                             bool may_change = false)
      : out_(out), path_(std::move(path)), may_change_(may_change) {}

  template <typename T, typename... Rules>
  void setting(std::string_view name, T& field, std::string_view, const Rules&... given) {
    const SettingRules rules = merge_rules(given...);
    const std::string key = join_key(path_, name);
    if constexpr (kIsStructList<T>) {
      for (std::size_t i = 0; i < field.size(); ++i) {
        SettingsFlattener nested(out_, key + "[" + std::to_string(i) + "]",
                                 may_change_ || rules.may_change);
        field[i].describe(nested);
      }
    } else {
      add(key, SettingValue<T>::format(field, rules), rules);
    }
  }

  template <typename Section, typename... Rules>
  void section(std::string_view name, Section& nested, std::string_view, const Rules&... given) {
    SettingsFlattener visitor(out_, join_key(path_, name),
                              may_change_ || merge_rules(given...).may_change);
    nested.describe(visitor);
  }

 private:
  void add(std::string key, std::string value, const SettingRules& rules);

  std::vector<FlatSetting>& out_;
  std::string path_;
  bool may_change_;
};

/// Lists help. A list of structs gives a row of its own and one per field of an element.
class SettingsLister : public SettingsOutput {
 public:
  explicit SettingsLister(std::vector<SettingHelp>& out, std::string path = "",
                          bool may_change = false)
      : out_(out), path_(std::move(path)), may_change_(may_change) {}

  template <typename T, typename... Rules>
  void setting(std::string_view name, T& field, std::string_view help, const Rules&... given) {
    const SettingRules rules = merge_rules(given...);
    const std::string key = join_key(path_, name);
    if constexpr (kIsStructList<T>) {
      add(key, "[]", "a list of sections", help, rules);
      SettingsLister nested(out_, key + "[]", may_change_ || rules.may_change);
      typename T::value_type element{};
      element.describe(nested);
    } else {
      add(key, SettingValue<T>::format(field, rules), accepted_values<T>(rules), help, rules);
    }
  }

  template <typename Section, typename... Rules>
  void section(std::string_view name, Section& nested, std::string_view, const Rules&... given) {
    SettingsLister visitor(out_, join_key(path_, name),
                           may_change_ || merge_rules(given...).may_change);
    nested.describe(visitor);
  }

 private:
  void add(std::string key, std::string value, std::string accepted, std::string_view help,
           const SettingRules& rules);

  std::vector<SettingHelp>& out_;
  std::string path_;
  bool may_change_;
};

/// Writes YAML with comments.
class SettingsWriter : public SettingsOutput {
 public:
  SettingsWriter() = default;
  std::string text() && { return std::move(text_); }
  const std::string& text() const& { return text_; }

  template <typename T, typename... Rules>
  void setting(std::string_view name, T& field, std::string_view help, const Rules&... given) {
    if constexpr (kIsStructList<T>) {
      line(name, field.empty() ? "[]" : "", help);
      for (auto& element : field) {
        SettingsWriter nested(indent_ + 4);
        element.describe(nested);
        add_element(nested.text_);
      }
    } else {
      line(name, SettingValue<T>::format(field, merge_rules(given...)), help);
    }
  }

  template <typename Section, typename... Rules>
  void section(std::string_view name, Section& nested, std::string_view help, const Rules&...) {
    line(name, "", help);
    indent_ += 2;
    nested.describe(*this);
    indent_ -= 2;
  }

 private:
  explicit SettingsWriter(std::size_t indent) : indent_(indent) {}
  void line(std::string_view name, std::string_view value, std::string_view help);
  /// Turns the first line of a nested section into "- ...".
  void add_element(std::string_view lines);

  std::string text_;
  std::size_t indent_ = 0;
};

}  // namespace octavo
