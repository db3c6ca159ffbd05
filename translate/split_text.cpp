#include "translate/split_text.h"

#include <algorithm>
#include <array>

#include "core/error.h"

namespace octavo {
namespace {

bool inside_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

/// How bad it is to cut behind `text`: 0 a sentence ends, 1 a clause ends, 2 neither.
int badness_behind(std::string_view text) {
  // Quotes and brackets may close behind the mark.
  constexpr std::array<std::string_view, 6> kClosing{"\"", "'", ")", "]", "\u201D", "\u00BB"};
  for (bool closed = true; closed;) {
    closed = false;
    for (const std::string_view mark : kClosing) {
      if (!text.ends_with(mark)) continue;
      text.remove_suffix(mark.size());
      closed = true;
    }
  }
  constexpr std::array<std::string_view, 4> kSentence{".", "!", "?", "\u2026"};
  constexpr std::array<std::string_view, 3> kClause{",", ";", ":"};
  const auto ends = [&](std::string_view mark) { return text.ends_with(mark); };
  if (std::any_of(kSentence.begin(), kSentence.end(), ends)) return 0;
  if (std::any_of(kClause.begin(), kClause.end(), ends)) return 1;
  return 2;
}

std::size_t distance(std::size_t a, std::size_t b) {
  return a > b ? a - b : b - a;
}

/// The best space to cut at, npos if there is none between two characters.
std::size_t best_space(std::string_view text) {
  const std::size_t middle = text.size() / 2;
  const std::size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  std::size_t best = std::string_view::npos;
  int best_badness = 0;
  if (first == std::string_view::npos) return best;
  for (std::size_t at = text.find(' ', first); at < last; at = text.find(' ', at + 1)) {
    // Far from the middle a sentence's end is worth no more than any space.
    const bool central = distance(at, middle) <= text.size() / 4;
    const int badness = central ? badness_behind(text.substr(0, at)) : 3;
    const bool better = best == std::string_view::npos || badness < best_badness ||
                        (badness == best_badness && distance(at, middle) < distance(best, middle));
    if (!better) continue;
    best = at;
    best_badness = badness;
  }
  return best;
}

void split(std::string_view text, std::string_view joint,
           const std::function<bool(std::string_view)>& fits, std::vector<TextPart>& parts) {
  if (fits(text)) {
    parts.push_back({std::string(text), joint});
    return;
  }
  const std::size_t space = best_space(text);
  if (space != std::string_view::npos) {
    split(text.substr(0, space), " ", fits, parts);
    split(text.substr(space + 1), joint, fits, parts);
    return;
  }
  std::size_t middle = text.size() / 2;
  while (middle > 0 && inside_character(text[middle])) --middle;
  if (middle == 0) {
    do ++middle;
    while (middle < text.size() && inside_character(text[middle]));
  }
  expect(middle < text.size(), "split_text: a single character does not fit");
  split(text.substr(0, middle), "", fits, parts);
  split(text.substr(middle), joint, fits, parts);
}

}  // namespace

std::vector<TextPart> split_text(std::string_view text,
                                 const std::function<bool(std::string_view)>& fits) {
  std::vector<TextPart> parts;
  split(text, "", fits, parts);
  return parts;
}

}  // namespace octavo
