#include "eval/ngram_matches.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace octavo {
namespace {

constexpr std::uint64_t kNoNgram = 0xffffffff;  // stands before the first word

std::uint64_t key_of(std::uint64_t prefix, std::size_t word) {
  return prefix << 32 | word;
}

// Neighbouring keys must not share neighbouring slots: multiply, then keep the high bits' mixture.
std::size_t mix(std::uint64_t key) {
  key *= 0x9e3779b97f4a7c15;
  return key ^ (key >> 32);
}

}  // namespace

// The slot that holds the word, or the free one where it belongs. Half the slots are always free.
std::size_t NgramMatches::slot_of(std::string_view word) const {
  const std::size_t mask = words_.size() - 1;
  std::size_t slot = std::hash<std::string_view>()(word) & mask;
  while (words_[slot].generation == generation_ && words_[slot].text != word)
    slot = (slot + 1) & mask;
  return slot;
}

std::size_t NgramMatches::slot_of(std::uint64_t key) const {
  const std::size_t mask = ngrams_.size() - 1;
  std::size_t slot = mix(key) & mask;
  while (ngrams_[slot].generation == generation_ && ngrams_[slot].key != key)
    slot = (slot + 1) & mask;
  return slot;
}

void NgramMatches::set_reference(std::span<const std::string_view> words) {
  ++generation_;
  const std::size_t room = std::bit_ceil(2 * words.size() + 2);
  if (words_.size() < room) words_.assign(room, {});
  if (ngrams_.size() < kBleuOrder * room) ngrams_.assign(kBleuOrder * room, {});

  numbers_.clear();
  for (const std::string_view word : words) {
    const std::size_t slot = slot_of(word);
    words_[slot] = {.text = word, .generation = generation_};
    numbers_.push_back(slot);
  }
  for (std::size_t begin = 0; begin < numbers_.size(); ++begin) {
    const std::size_t end = std::min(begin + kBleuOrder, numbers_.size());
    std::uint64_t prefix = kNoNgram;
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint64_t key = key_of(prefix, numbers_[i]);
      const std::size_t slot = slot_of(key);
      Ngram& ngram = ngrams_[slot];
      if (ngram.generation != generation_)
        ngram = {.key = key, .generation = generation_, .count = 0};
      ++ngram.count;
      prefix = slot;
    }
  }
}

std::array<std::int64_t, kBleuOrder> NgramMatches::take_matches(
    std::span<const std::string_view> words) {
  std::array<std::int64_t, kBleuOrder> matched{};
  if (words_.empty()) return matched;
  numbers_.clear();
  for (const std::string_view word : words) numbers_.push_back(slot_of(word));
  for (std::size_t begin = 0; begin < numbers_.size(); ++begin) {
    std::uint64_t prefix = kNoNgram;
    for (std::size_t n = 0; n < kBleuOrder && begin + n < numbers_.size(); ++n) {
      const std::size_t word = numbers_[begin + n];
      if (words_[word].generation != generation_) break;  // not in the reference
      const std::size_t slot = slot_of(key_of(prefix, word));
      Ngram& ngram = ngrams_[slot];
      if (ngram.generation != generation_) break;  // nor is anything longer
      if (ngram.count > 0) {
        --ngram.count;
        ++matched[n];
      }
      prefix = slot;
    }
  }
  return matched;
}

}  // namespace octavo
