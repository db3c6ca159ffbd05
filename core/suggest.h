#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace octavo {

/// The candidate that `word` is most likely a misspelling of: fewest inserted, deleted, replaced
/// or swapped characters, at most a third of its length (one is always allowed); capitals count as
/// small letters. Nothing if none is that near; the first of equals.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

/// "; did you mean 'X'?" for the nearest candidate, or an empty string.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace octavo
