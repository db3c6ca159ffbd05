#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "core/lines.h"
#include "translate/translator.h"

namespace octavo {

struct StreamSettings {
  /// Write every translation as "NUMBER ||| TEXT ||| SCORE", lines numbered from 0, as Moses does.
  bool nbest_lists = false;
  /// Lines read before they are sorted by length and translated.
  std::size_t window_lines = 2048;
  std::size_t window_bytes = std::size_t{1} << 22;
};

/// Translates a stream of lines in windows, in order: sorting by length happens inside a window.
/// A window ends early when no more input is there, so that a line typed at a terminal or sent by
/// another program is answered at once.
/// @param write  is given whole lines, and must pass them on at once.
/// @returns seconds spent on it, those waited for input not counted.
double translate_stream(LineReader& input, Translator& translator, const StreamSettings& settings,
                        const std::function<void(std::string_view)>& write);

}  // namespace octavo
