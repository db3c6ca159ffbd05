#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Settings: one describe() per struct reads YAML, checks ranges, prints help and writes
/// resolved.yaml. A struct of settings looks like this:
///
///     struct OptimizerConfig {
///       double learning_rate = 5e-4;
///       template <typename Visitor>
///       void describe(Visitor& v) {
///         v.setting("learning_rate", learning_rate, "peak rate, reached after warmup", v.open(0,
///         1)); v.section("average", average, "averaging of weights");   // a nested struct
///       }
///     };
///
/// Field types: bool, int, std::int64_t, double, std::string, an enum (through enum_names below),
/// std::optional of these ("none" or "auto" spelled as the range says), std::vector of strings,
/// std::vector of structs with describe().
namespace octavo {

/// Names of an enum's values, specialised beside each enum that is a setting:
///     template <> struct EnumNames<Mask> { static constexpr std::pair<Mask, std::string_view>
///     values[] = {...}; };
template <typename E>
struct EnumNames;

/// What a value must obey, and how to say so.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false, high_open = false;
};

}  // namespace octavo
