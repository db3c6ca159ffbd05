#include "trainer/training_state.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

class Writer {
 public:
  template <typename T>
  void field(std::string_view name, const T& value) {
    json_[std::string(name)] = value;
  }
  void field(std::string_view name, double value) {
    // JSON has no word for these; null would lose which one it was.
    if (std::isfinite(value))
      json_[std::string(name)] = value;
    else
      json_[std::string(name)] = fmt::format("{}", value);
  }
  void field(std::string_view name, const std::optional<double>& value) {
    if (value)
      field(name, *value);
    else
      json_[std::string(name)] = nullptr;
  }
  std::string text() const { return json_.dump(2) + "\n"; }

 private:
  Json json_ = Json::object();
};

class Reader {
 public:
  explicit Reader(Json json) : json_(std::move(json)) {}

  void field(std::string_view name, std::int64_t& value) {
    const Json json = take(name);
    const bool fits = json.is_number_unsigned() && json.get<std::uint64_t>() <= INT64_MAX;
    if (!fits) throw UserError(fmt::format("{} is not a number of 0 or more", name));
    value = json.get<std::int64_t>();
  }
  void field(std::string_view name, std::uint64_t& value) {
    const Json json = take(name);
    if (!json.is_number_unsigned())
      throw UserError(fmt::format("{} is not a number of 0 or more", name));
    value = json.get<std::uint64_t>();
  }
  void field(std::string_view name, bool& value) {
    const Json json = take(name);
    if (!json.is_boolean()) throw UserError(fmt::format("{} is neither true nor false", name));
    value = json.get<bool>();
  }
  void field(std::string_view name, double& value) { value = number(name, take(name)); }
  void field(std::string_view name, std::optional<double>& value) {
    const Json json = take(name);
    value = json.is_null() ? std::nullopt : std::optional(number(name, json));
  }
  void field(std::string_view name, std::string& value) {
    const Json json = take(name);
    if (!json.is_string()) throw UserError(fmt::format("{} is not a text", name));
    value = json.get<std::string>();
  }
  void field(std::string_view name, std::map<std::string, std::string>& value) {
    value = take(name).get<std::map<std::string, std::string>>();
  }
  void finish() const {
    if (!json_.empty())
      throw UserError(fmt::format("{} is not a field of this version", json_.begin().key()));
  }

 private:
  Json take(std::string_view name) {
    const auto found = json_.find(std::string(name));
    if (found == json_.end()) throw UserError(fmt::format("{} is missing", name));
    Json value = *found;
    json_.erase(found);
    return value;
  }
  static double number(std::string_view name, const Json& json) {
    if (json == "nan") return std::nan("");
    if (json == "inf") return INFINITY;
    if (json == "-inf") return -INFINITY;
    if (!json.is_number()) throw UserError(fmt::format("{} is not a number", name));
    return json.get<double>();
  }

  Json json_;
};

}  // namespace

std::string to_json(const TrainingState& state) {
  Writer writer;
  TrainingState copy = state;  // describe() wants something it could fill
  copy.describe(writer);
  return writer.text();
}

TrainingState parse_training_state(const std::string& text, const std::string& name) {
  TrainingState state;
  try {
    Json json = Json::parse(text);
    if (!json.is_object()) throw UserError("it is not an object");
    Reader reader(std::move(json));
    state.describe(reader);
    reader.finish();
  } catch (const std::exception& e) {
    throw UserError(
        fmt::format("{} is not the state of a training run: {}. It is damaged or of another "
                    "version; use another checkpoint.",
                    name, e.what()));
  }
  return state;
}

}  // namespace octavo
