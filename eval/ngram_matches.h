#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace octavo {

/// Longest n-gram that BLEU counts.
inline constexpr int kBleuOrder = 4;

/// The n-grams of one reference, and how many of a hypothesis' n-grams are among them. Exact: equal
/// hashes are told apart. Tables are kept between references, so that counting doesn't allocate.
class NgramMatches {
 public:
  /// Forgets the last reference and takes this one. The words must stay valid until the next call.
  void set_reference(std::span<const std::string_view> words);

  /// n-grams, n = 1 .. 4, that hypothesis and reference share, each at most as often as the
  /// reference has it. Uses the reference up: call once for each set_reference.
  std::array<std::int64_t, kBleuOrder> take_matches(std::span<const std::string_view> words);

 private:
  // Open addressing in both tables; a slot whose generation is older than ours is free.
  struct Word {
    std::string_view text;
    std::int64_t generation = 0;
  };
  struct Ngram {
    std::uint64_t key = 0;  // number of the n-gram without its last word, number of that word
    std::int64_t generation = 0;
    std::int64_t count = 0;  // times in the reference that are not matched yet
  };
  std::vector<Word> words_;
  std::vector<Ngram> ngrams_;
  std::int64_t generation_ = 0;
  std::vector<std::size_t> numbers_;  // scratch: the words of a line as indices into words_

  std::size_t slot_of(std::string_view word) const;
  std::size_t slot_of(std::uint64_t key) const;
};

}  // namespace octavo
