#include "data/doctor/test_overlap.h"

#include <unicode/uchar.h>
#include <xxhash.h>

#include <algorithm>
#include <span>

#include "data/doctor/characters.h"

namespace octavo {
namespace {

constexpr std::size_t kLeastWords = 5;

std::uint64_t hash_of(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

std::uint64_t hash_of(std::span<const std::uint64_t> words) {
  return XXH3_64bits(words.data(), words.size_bytes());
}

/// Hashes of the words: letters, marks and digits, lower-cased.
void words_of(std::string_view line, std::vector<std::uint64_t>& words) {
  constexpr std::uint64_t kStart = 0xcbf29ce484222325, kFactor = 0x100000001b3;  // FNV-1a
  const CharacterTable& table = CharacterTable::get();
  words.clear();
  std::uint64_t word = kStart;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(line.size());) {
    const UChar32 c = next_character(line, i);
    if ((table.traits(c) & kWordPart) != 0) {
      const UChar32 lower = c >= 'A' && c <= 'Z' ? c + 32 : c < 0x80 ? c : u_tolower(c);
      word = (word ^ static_cast<std::uint64_t>(lower)) * kFactor;
    } else if (word != kStart) {
      words.push_back(word);
      word = kStart;
    }
  }
  if (word != kStart) words.push_back(word);
}

/// Distinct hashes of every three words in a row; none of lines with few words.
void triples_of(const std::vector<std::uint64_t>& words, std::vector<std::uint64_t>& triples) {
  triples.clear();
  if (words.size() < kLeastWords) return;
  for (std::size_t i = 0; i + 3 <= words.size(); ++i)
    triples.push_back(hash_of(std::span(words).subspan(i, 3)));
  std::ranges::sort(triples);
  triples.erase(std::unique(triples.begin(), triples.end()), triples.end());
}

}  // namespace

void TestLines::add(std::string_view line) {
  std::vector<std::uint64_t> words, triples;
  words_of(line, words);
  if (words.empty()) return;  // "---" says nothing about where it comes from
  exact_.insert(hash_of(line));
  words_only_.insert(hash_of(words));
  triples_of(words, triples);
  const auto number = static_cast<std::uint32_t>(triples_of_line_.size());
  triples_of_line_.push_back(static_cast<std::int32_t>(triples.size()));
  for (const std::uint64_t triple : triples) lines_of_triple_[triple].push_back(number);
}

Overlap TestLines::find(std::string_view line, Scratch& scratch) const {
  if (exact_.contains(hash_of(line))) return Overlap::exact;
  words_of(line, scratch.words);
  if (scratch.words.empty()) return Overlap::none;
  if (words_only_.contains(hash_of(scratch.words))) return Overlap::near;
  triples_of(scratch.words, scratch.triples);
  return shares_triples(scratch) ? Overlap::near : Overlap::none;
}

bool TestLines::shares_triples(Scratch& scratch) const {
  scratch.common.resize(triples_of_line_.size());
  const auto ours = static_cast<std::int32_t>(scratch.triples.size());
  for (const std::uint64_t triple : scratch.triples) {
    const auto found = lines_of_triple_.find(triple);
    if (found == lines_of_triple_.end()) continue;
    for (const std::uint32_t test : found->second)
      if (scratch.common[test]++ == 0) scratch.touched.push_back(test);
  }
  bool near = false;
  for (const std::uint32_t test : scratch.touched) {
    // 2 * common / (ours + theirs) >= 0.8
    near = near || 10 * scratch.common[test] >= 4 * (ours + triples_of_line_[test]);
    scratch.common[test] = 0;
  }
  scratch.touched.clear();
  return near;
}

}  // namespace octavo
