#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "core/settings.h"

namespace octavo {

/// Whose search is followed: length penalty, stop rule and length limit. translate/presets.h says
/// what each means.
enum class SearchPreset : unsigned char { transformer, fairseq, marian };

template <>
struct EnumNames<SearchPreset> {
  static constexpr std::array<std::pair<SearchPreset, std::string_view>, 3> values{
      {{SearchPreset::transformer, "transformer"},
       {SearchPreset::fairseq, "fairseq"},
       {SearchPreset::marian, "marian"}}};
};

/// How translations are searched for. What is not given is the preset's.
struct SearchConfig {
  SearchPreset preset = SearchPreset::transformer;
  std::optional<int> beam = {};
  std::optional<double> length_penalty = {};
  std::optional<int> min_length = {};
  std::optional<int> max_length = {};
  int batch_tokens = 2048;

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("preset", preset, "whose length penalty, stop rule and length limit are followed");
    v.setting("beam", beam, "hypotheses kept per sentence; 1 is greedy", v.closed(1, 1000),
              v.empty_is("preset"));
    v.setting("length_penalty", length_penalty,
              "exponent of the length penalty; 0 ranks by log-probability alone", v.closed(0, 10),
              v.empty_is("preset"));
    v.setting("min_length", min_length, "shortest translation in tokens, EOS counted",
              v.closed(1, 65536), v.empty_is("preset"));
    v.setting("max_length", max_length, "longest translation in tokens, EOS counted",
              v.closed(1, 65536), v.empty_is("preset"));
    v.setting("batch_tokens", batch_tokens,
              "a batch holds at most this many sentences x tokens of output; bounds memory",
              v.closed(1, 1 << 18));
  }
};

}  // namespace octavo
