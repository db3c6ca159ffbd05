#include "translate/translator.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/lines.h"
#include "translate/split_text.h"

namespace octavo {
namespace {

/// A character is at most four bytes, each a token; a space may come before it and EOS behind.
constexpr std::int64_t kTokensOfACharacter = 6;
constexpr std::int64_t kMostWarnings = 10;

}  // namespace

Translator::Translator(const Subwords& source, const Subwords& target, const Settings& settings,
                       TranslateIds translate_ids)
    : target_(target),
      encoder_(source),
      source_eos_(source.vocabulary().eos()),
      settings_(settings),
      translate_ids_(std::move(translate_ids)) {
  if (settings.long_lines == LongLines::split && settings.max_source < kTokensOfACharacter) {
    throw UserError(fmt::format(
        "sources may have {} tokens, but to split long lines the model must take {} at least; "
        "refuse them (--long-lines refuse)",
        settings.max_source, kTokensOfACharacter));
  }
}

std::vector<std::vector<TextTranslation>> Translator::translate(std::span<const std::string> lines,
                                                                std::int64_t first_line) {
  sources_.clear();
  std::vector<Line> parts;
  parts.reserve(lines.size());
  for (const std::string& line : lines) parts.push_back(add(line, first_line++));
  const std::vector<std::vector<Translation>> found = translate_ids_(sources_);
  expect(found.size() == sources_.size(), "Translator: sources and translations don't match");
  for (const std::vector<std::int32_t>& source : sources_) {
    counts_.source_tokens += static_cast<std::int64_t>(source.size());
  }
  for (const std::vector<Translation>& translations : found) {
    expect(!translations.empty(), "Translator: a source has no translation");
    counts_.target_tokens += static_cast<std::int64_t>(translations[0].ids.size()) + 1;
    counts_.unfinished += !translations[0].ended;
  }
  std::vector<std::vector<TextTranslation>> results;
  results.reserve(parts.size());
  for (const Line& line : parts) {
    results.push_back(join(line, std::span(found).subspan(line.begin, line.end - line.begin)));
  }
  counts_.lines += static_cast<std::int64_t>(lines.size());
  return results;
}

std::vector<std::int32_t> Translator::encode(std::string_view text) {
  std::vector<std::int32_t> ids;
  encoder_.encode(text, ids);
  ids.push_back(source_eos_);
  return ids;
}

Translator::Line Translator::add(const std::string& line, std::int64_t number) {
  std::string valid;
  std::string_view text = line;
  if (!is_valid_utf8(text)) {
    if (++counts_.ill_formed <= kMostWarnings) {
      spdlog::warn("[translate] line {}: ill-formed UTF-8 at byte {}; U+FFFD takes its place{}",
                   number, first_invalid_utf8(text) + 1,
                   counts_.ill_formed == kMostWarnings ? "; no more is said of such lines" : "");
    }
    text = valid = replace_invalid_utf8(text);
  }
  Line result{.begin = sources_.size(), .end = sources_.size(), .joints = {}};
  if (is_blank(text)) return result;  // no such line was ever trained on
  std::vector<std::int32_t> ids = encode(text);
  const auto tokens = static_cast<std::int64_t>(ids.size());
  if (tokens <= settings_.max_source) {
    sources_.push_back(std::move(ids));
    result.joints.push_back("");
  } else {
    add_in_parts(text, number, tokens, result);
  }
  result.end = sources_.size();
  return result;
}

void Translator::add_in_parts(std::string_view text, std::int64_t number, std::int64_t tokens,
                              Line& line) {
  if (settings_.long_lines == LongLines::refuse) {
    throw UserError(fmt::format(
        "line {}: it has {} tokens, the model takes at most {}. Split the line, or let it be done "
        "(--long-lines split)",
        number, tokens, settings_.max_source));
  }
  std::vector<std::int32_t> ids;
  const auto fits = [&](std::string_view part) {
    ids = encode(part);
    return static_cast<std::int64_t>(ids.size()) <= settings_.max_source;
  };
  for (const TextPart& part : split_text(text, fits)) {
    sources_.push_back(encode(part.text));
    line.joints.push_back(part.joint);
  }
  ++counts_.split;
}

std::vector<TextTranslation> Translator::join(
    const Line& line, std::span<const std::vector<Translation>> parts) const {
  std::size_t n = 1;
  for (const std::vector<Translation>& part : parts) n = std::max(n, part.size());
  std::vector<TextTranslation> joined(n);
  for (std::size_t rank = 0; rank < n; ++rank) {
    TextTranslation& whole = joined[rank];
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const Translation& part = parts[p][std::min(rank, parts[p].size() - 1)];
      whole.text += target_.decode(part.ids);
      whole.text += line.joints[p];
      whole.score += part.score;
    }
    // The vocabulary says that no such piece is generated; one line more would shift all others.
    std::replace(whole.text.begin(), whole.text.end(), '\n', ' ');
  }
  return joined;
}

}  // namespace octavo
