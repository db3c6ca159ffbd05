#include "translate/stream.h"

#include <fmt/format.h>

#include <chrono>
#include <iterator>
#include <string>
#include <vector>

namespace octavo {
namespace {

/// How long more input is waited for: nobody sees it, and pasted lines come together.
constexpr int kPatienceMilliseconds = 20;

/// Reads a window. Returns false when the input has ended.
bool read_window(LineReader& input, const StreamSettings& settings,
                 std::vector<std::string>& lines) {
  lines.clear();
  std::size_t bytes = 0;
  while (lines.size() < settings.window_lines && bytes < settings.window_bytes) {
    if (!lines.empty() && !input.ready(kPatienceMilliseconds)) break;
    const auto line = input.next();
    if (!line) return false;
    lines.emplace_back(*line);
    bytes += line->size();
  }
  return true;
}

}  // namespace

double translate_stream(LineReader& input, Translator& translator, const StreamSettings& settings,
                        const std::function<void(std::string_view)>& write) {
  std::vector<std::string> lines;
  std::string out;
  std::chrono::duration<double> busy{};
  for (bool more = true; more;) {
    const std::int64_t first = input.line_number();
    more = read_window(input, settings, lines);
    if (lines.empty()) continue;
    const auto start = std::chrono::steady_clock::now();
    const auto translations = translator.translate(lines, first + 1);
    out.clear();
    for (std::size_t i = 0; i < translations.size(); ++i) {
      if (!settings.nbest_lists) {
        out += translations[i][0].text;
        out += '\n';
        continue;
      }
      for (const TextTranslation& t : translations[i]) {
        fmt::format_to(std::back_inserter(out), "{} ||| {} ||| {:.6f}\n",
                       first + static_cast<std::int64_t>(i), t.text, t.score);
      }
    }
    write(out);
    busy += std::chrono::steady_clock::now() - start;
  }
  return busy.count();
}

}  // namespace octavo
