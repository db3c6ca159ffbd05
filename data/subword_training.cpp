#include "data/subword_training.h"

#include <fmt/format.h>
#include <sentencepiece_trainer.h>
#include <xxhash.h>

#include <algorithm>
#include <unordered_map>

#include "core/error.h"

namespace octavo {

void LineSample::offer(std::string_view line) {
  ++offered_;
  if (lines_.size() < limit_) {
    lines_.emplace_back(line);
    return;
  }
  const std::uint64_t place = random_.below(offered_);
  if (place < limit_) lines_[place] = line;
}

namespace {

/// Of the text's bytes rare words may take so many with them.
constexpr double kRareShare = 0.05;

/// Hands SentencePiece one line after the other, and forgets each.
class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(std::vector<std::string> lines) : lines_(std::move(lines)) {}
  bool done() const override { return next_ == lines_.size(); }
  void Next() override {
    std::string().swap(lines_[next_]);
    ++next_;
  }
  const std::string& value() const override { return lines_[next_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::vector<std::string> lines_;
  std::size_t next_ = 0;
};

/// What the trainer reserves for itself becomes a space: it would skip the line, or take U+2581 for
/// a space. These characters get no pieces, and are spelled in bytes.
void blank_reserved(std::string& line) {
  for (const std::string_view reserved : {std::string_view("\xE2\x96\x81"),  // U+2581, its space
                                          std::string_view("\xE2\x96\x85"),  // U+2585, its UNK
                                          std::string_view("\0", 1)}) {
    for (std::size_t at = 0; (at = line.find(reserved, at)) != std::string::npos; ++at)
      line.replace(at, reserved.size(), " ");
  }
}

struct Word {
  std::string text;
  std::int64_t count;
  std::uint64_t hash;

  /// The more frequent first; those alike in an order that favours no letters.
  bool operator<(const Word& other) const {
    if (count != other.count) return count > other.count;
    return hash != other.hash ? hash < other.hash : text < other.text;
  }
  /// Share in the text.
  std::int64_t bytes() const { return count * static_cast<std::int64_t>(text.size()); }
};

/// Leaves out rare words beyond `most`, see SubwordTraining.
void leave_out_rare(std::vector<Word>& words, std::size_t most) {
  std::sort(words.begin(), words.end());
  std::int64_t spare = 0;
  for (const Word& w : words) spare += w.bytes();
  spare = static_cast<std::int64_t>(static_cast<double>(spare) * kRareShare);
  while (words.size() > most && words.back().bytes() <= spare) {
    spare -= words.back().bytes();
    words.pop_back();
  }
}

/// "WORD<tab>COUNT" for each word, all that BPE learns from. A tab becomes a space.
std::vector<std::string> count_words(std::vector<std::string> lines, std::size_t most) {
  std::unordered_map<std::string, std::int64_t> counts;
  std::string word;
  for (std::string& line : lines) {
    std::ranges::replace(line, '\t', ' ');
    for (std::size_t begin = 0; begin < line.size();) {
      const std::size_t end = std::min(line.find(' ', begin), line.size());
      word.assign(line, begin, end - begin);
      if (!word.empty()) ++counts[word];
      begin = end + 1;
    }
    std::string().swap(line);
  }
  std::vector<Word> words;
  words.reserve(counts.size());
  for (const auto& [text, count] : counts)
    words.push_back({text, count, XXH3_64bits(text.data(), text.size())});
  leave_out_rare(words, most);
  lines.clear();
  for (const Word& w : words) lines.push_back(fmt::format("{}\t{}", w.text, w.count));
  return lines;
}

/// The number that follows `marker`, or "?".
std::string number_after(const std::string& text, std::string_view marker) {
  const std::size_t at = text.find(marker);
  if (at == std::string::npos) return "?";
  const std::size_t begin = at + marker.size();
  return text.substr(begin, text.find_first_not_of("0123456789", begin) - begin);
}

/// SentencePiece's reason without its place in the source, and what to do about it.
[[noreturn]] void explain(const SubwordTraining& settings, std::string reason) {
  const std::size_t place = reason.rfind("] ");
  if (place != std::string::npos) reason.erase(0, place + 2);
  if (reason.starts_with("Vocabulary size too high")) {
    throw UserError(fmt::format(
        "data.subwords.vocabulary_size is {}, but the text has only {} different pieces. Set it to "
        "that or less.",
        settings.vocabulary_size, number_after(reason, "<= ")));
  }
  if (reason.starts_with("Vocabulary size is smaller")) {
    throw UserError(fmt::format(
        "data.subwords.vocabulary_size is {}, but the special pieces, 256 bytes and the text's "
        "characters take {}. Raise it, or lower data.subwords.character_coverage (now {}): rare "
        "characters are then spelled in bytes.",
        settings.vocabulary_size, number_after(reason, " vs "), settings.character_coverage));
  }
  throw UserError(fmt::format("data.subwords: SentencePiece can't train a model of {} pieces: {}",
                              settings.vocabulary_size, reason));
}

}  // namespace

std::string train_subwords(const SubwordTraining& settings, std::vector<std::string> lines) {
  const bool bpe = settings.kind == SubwordKind::bpe;
  const std::unordered_map<std::string, std::string> arguments{
      {"model_type", bpe ? "bpe" : "unigram"},
      {"input_format", bpe ? "tsv" : "text"},
      {"vocab_size", std::to_string(settings.vocabulary_size)},
      {"character_coverage", fmt::format("{}", settings.character_coverage)},
      {"pad_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"unk_id", "3"},
      {"byte_fallback", "true"},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"max_sentence_length", "1000000"},
      {"num_threads", "1"},   // more would change the order of sums
      {"minloglevel", "2"}};  // errors only
  for (std::string& line : lines) blank_reserved(line);
  if (bpe) lines = count_words(std::move(lines), settings.most_words);
  if (std::all_of(lines.begin(), lines.end(), [](const std::string& s) { return s.empty(); }))
    throw UserError(
        "data.train: there is no text to train a subword model on: the files are empty, or none of "
        "their lines can be used.");
  Lines iterator(std::move(lines));
  std::string serialized;
  const auto status = sentencepiece::SentencePieceTrainer::Train(arguments, &iterator, &serialized);
  if (!status.ok()) explain(settings, status.ToString());
  return serialized;
}

}  // namespace octavo
