#include "eval/bleu_tokens.h"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <array>

#include "core/error.h"

namespace octavo {
namespace {

// One character at text[i]; i moves behind it.
UChar32 next_point(std::string_view text, std::int32_t& i) {
  UChar32 point = 0;
  U8_NEXT_OR_FFFD(text.data(), i, static_cast<std::int32_t>(text.size()), point);
  return point;
}

void append_point(std::string& text, UChar32 point) {
  std::array<char, U8_MAX_LENGTH> bytes{};
  std::int32_t length = 0;
  U8_APPEND_UNSAFE(bytes.data(), length, point);
  text.append(bytes.data(), static_cast<std::size_t>(length));
}

// White space as Python's str.split() sees it: bidirectional class WS, B or S, or category Zs.
bool is_space(UChar32 c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x1f);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_stop(char c) {
  return c == '.' || c == ',';
}

// ASCII punctuation and symbols without - . , and the apostrophe.
bool is_13a_symbol(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

bool is_number(UChar32 c) {
  return (U_GET_GC_MASK(c) & U_GC_N_MASK) != 0;
}
bool is_punctuation(UChar32 c) {
  return (U_GET_GC_MASK(c) & U_GC_P_MASK) != 0;
}
bool is_symbol(UChar32 c) {
  return (U_GET_GC_MASK(c) & U_GC_S_MASK) != 0;
}

// One substitution of two neighbours: where first(a) and second(b) hold, "ab" becomes "a b " (gap
// after the first and behind the second) or " a b". Matches do not overlap, as in any regex engine:
// what one match consumed can't begin the next.
enum class Gap { behind, before };
template <typename Text, typename First, typename Second>
void split_pairs(const Text& in, Text& out, Gap gap, First first, Second second) {
  out.clear();
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (i + 1 == in.size() || !first(in[i]) || !second(in[i + 1])) {
      out.push_back(in[i]);
      continue;
    }
    if (gap == Gap::before) out.push_back(' ');
    out.push_back(in[i]);
    out.push_back(' ');
    out.push_back(in[++i]);
    if (gap == Gap::behind) out.push_back(' ');
  }
}

template <typename Text, typename Predicate>
void split_singles(const Text& in, Text& out, Predicate which) {
  out.clear();
  for (const auto c : in) {
    if (which(c)) {
      out.push_back(' ');
      out.push_back(c);
      out.push_back(' ');
    } else {
      out.push_back(c);
    }
  }
}

std::string_view without_trailing_space(std::string_view line) {
  while (!line.empty()) {
    auto i = static_cast<std::int32_t>(line.size());
    UChar32 point = 0;
    U8_PREV_OR_FFFD(line.data(), 0, i, point);
    if (!is_space(point)) break;
    line = line.substr(0, static_cast<std::size_t>(i));
  }
  return line;
}

}  // namespace

BleuTokenizer::BleuTokenizer(BleuTokenize tokenize, bool lowercase)
    : tokenize_(tokenize), lowercase_(lowercase) {}

std::span<const std::string_view> BleuTokenizer::operator()(std::string_view line) {
  std::string lowered;
  if (lowercase_) {
    icu::StringByteSink<std::string> sink(&lowered, static_cast<std::int32_t>(line.size()));
    UErrorCode status = U_ZERO_ERROR;
    icu::CaseMap::utf8ToLower("", 0, {line.data(), static_cast<std::int32_t>(line.size())}, sink,
                              nullptr, status);
    if (U_FAILURE(status)) throw InternalError(std::string("lower-casing: ") + u_errorName(status));
    line = lowered;
  }
  line = without_trailing_space(line);
  switch (tokenize_) {
    case BleuTokenize::v13a:
      pass_13a(line);
      break;
    case BleuTokenize::intl:
      pass_intl(line);
      break;
    case BleuTokenize::chars:
    case BleuTokenize::none:
      bytes_ = line;
      break;
  }
  tokens_.clear();
  if (tokenize_ == BleuTokenize::chars) {
    split_chars(bytes_);
  } else {
    split(bytes_);
  }
  return tokens_;
}

// The rules look at ASCII characters and at "not a digit", so single bytes of longer characters may
// stand for the whole character: the same gaps come out.
void BleuTokenizer::pass_13a(std::string_view line) {
  bytes_.assign(1, ' ').append(line).append(1, ' ');
  replace_all(bytes_, "<skipped>", "");
  if (bytes_.find('&') != std::string::npos) {
    replace_all(bytes_, "&quot;", "\"");
    replace_all(bytes_, "&amp;", "&");
    replace_all(bytes_, "&lt;", "<");
    replace_all(bytes_, "&gt;", ">");
  }
  const auto not_digit = [](char c) { return !is_digit(c); };
  split_singles(bytes_, next_bytes_, is_13a_symbol);
  split_pairs(next_bytes_, bytes_, Gap::behind, not_digit, is_stop);
  split_pairs(bytes_, next_bytes_, Gap::before, is_stop, not_digit);
  split_pairs(next_bytes_, bytes_, Gap::behind, is_digit, [](char c) { return c == '-'; });
}

void BleuTokenizer::pass_intl(std::string_view line) {
  points_.clear();
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(line.size());)
    points_.push_back(static_cast<char32_t>(next_point(line, i)));
  const auto number = [](char32_t c) { return is_number(static_cast<UChar32>(c)); };
  const auto not_number = [&](char32_t c) { return !number(c); };
  const auto punctuation = [](char32_t c) { return is_punctuation(static_cast<UChar32>(c)); };
  split_pairs(points_, next_points_, Gap::behind, not_number, punctuation);
  split_pairs(next_points_, points_, Gap::before, punctuation, not_number);
  split_singles(points_, next_points_,
                [](char32_t c) { return is_symbol(static_cast<UChar32>(c)); });
  bytes_.clear();
  for (const char32_t c : next_points_) append_point(bytes_, static_cast<UChar32>(c));
}

void BleuTokenizer::split(std::string_view text) {
  const auto size = static_cast<std::int32_t>(text.size());
  std::int32_t begin = 0;
  for (std::int32_t i = 0; i < size;) {
    const std::int32_t at = i;
    if (!is_space(next_point(text, i))) continue;
    if (at > begin) tokens_.push_back(text.substr(begin, at - begin));
    begin = i;
  }
  if (size > begin) tokens_.push_back(text.substr(begin, size - begin));
}

void BleuTokenizer::split_chars(std::string_view text) {
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(text.size());) {
    const std::int32_t at = i;
    if (!is_space(next_point(text, i))) tokens_.push_back(text.substr(at, i - at));
  }
}

}  // namespace octavo
