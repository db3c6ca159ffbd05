#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace octavo {

/// A piece of a text that was too long.
struct TextPart {
  std::string text;
  std::string_view joint;  ///< what stood between it and the next: " ", or "" inside a word
};

/// Cuts a text into parts that fit, as few as halving gives: near the middle, at the end of a
/// sentence if there is one, else of a clause, else of a word, else between two characters.
/// @param text  valid UTF-8.
/// @param fits  whether a part is short enough; a single character must be.
std::vector<TextPart> split_text(std::string_view text,
                                 const std::function<bool(std::string_view)>& fits);

}  // namespace octavo
