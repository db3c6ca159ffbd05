#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace octavo {

/// How a line of training text stands to the lines of test sets.
enum class Overlap : std::uint8_t { none, near, exact };

/// The lines of test sets, to find them, or what is nearly the same, in training text.
///
/// Near: the same words without regard to case, punctuation and spaces; or, of lines with five or
/// more words, so many word triples in common that 2 * common / (triples of one + of the other)
/// is at least 0.8 (Dice's coefficient).
class TestLines {
 public:
  void add(std::string_view line);
  bool empty() const { return exact_.empty(); }

  /// Scratch of a thread that asks.
  struct Scratch {
    std::vector<std::uint64_t> words, triples;
    std::vector<std::uint32_t> touched;
    std::vector<std::int32_t> common;
  };
  Overlap find(std::string_view line, Scratch& scratch) const;

 private:
  bool shares_triples(Scratch& scratch) const;

  std::unordered_set<std::uint64_t> exact_, words_only_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> lines_of_triple_;
  std::vector<std::int32_t> triples_of_line_;
};

}  // namespace octavo
