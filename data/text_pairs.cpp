#include "data/text_pairs.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "core/context.h"
#include "core/error.h"
#include "core/parallel.h"
#include "data/corpus.h"

namespace octavo {

namespace {

constexpr std::size_t kBlockLines = 32768;
constexpr std::int64_t kLinesPerReport = 2000000;

/// One thread's share of a block: the ids of its pairs, end to end.
struct Share {
  struct Pair {
    std::optional<DropReason> dropped;
    std::size_t source_end, target_end;  // in ids
  };

  Share(const SubwordPair& subwords)
      : source_encoder(*subwords.source), target_encoder(*subwords.target) {}

  void encode(const EncodeSettings& settings, const std::string& source, const std::string& target);

  SubwordEncoder source_encoder, target_encoder;
  std::vector<std::int32_t> source_ids, target_ids;
  std::vector<Pair> pairs;
};

std::optional<DropReason> judge(const EncodeSettings& settings, std::size_t source,
                                std::size_t target) {
  const double s = static_cast<double>(source) + 1, t = static_cast<double>(target) + 1;
  if (std::max(s, t) > static_cast<double>(settings.max_length)) return DropReason::too_long;
  if (settings.max_ratio && std::max(s, t) > *settings.max_ratio * std::min(s, t))
    return DropReason::ratio;
  return std::nullopt;
}

void Share::encode(const EncodeSettings& settings, const std::string& source,
                   const std::string& target) {
  const std::size_t source_begin = source_ids.size(), target_begin = target_ids.size();
  std::optional<DropReason> dropped;
  if (!is_valid_utf8(source) || !is_valid_utf8(target)) {
    dropped = DropReason::invalid_utf8;
  } else if (is_blank(source) || is_blank(target)) {
    dropped = DropReason::empty;
  } else {
    source_encoder.encode(source, source_ids);
    target_encoder.encode(target, target_ids);
    dropped = judge(settings, source_ids.size() - source_begin, target_ids.size() - target_begin);
  }
  if (dropped) {
    source_ids.resize(source_begin);
    target_ids.resize(target_begin);
  }
  pairs.push_back(
      {.dropped = dropped, .source_end = source_ids.size(), .target_end = target_ids.size()});
}

/// Columns of the corpus, in this order.
enum : std::size_t { kSource, kTarget, kLine, kSourceText, kTargetText };

std::vector<Column> columns(const SubwordPair& subwords, bool keep_text) {
  std::vector<Column> all{{"source", tokens_type(subwords.source->vocabulary().size())},
                          {"target", tokens_type(subwords.target->vocabulary().size())},
                          {"line", ColumnType::number}};
  if (keep_text) {
    all.push_back({"source_text", ColumnType::text});
    all.push_back({"target_text", ColumnType::text});
  }
  return all;
}

/// Writes the pairs of one share, whose lines begin at `first` of the block, and counts them.
void write_share(const Share& share, std::size_t first, const std::vector<std::string>& source,
                 const std::vector<std::string>& target, bool keep_text, PairCounts& counts,
                 CorpusWriter& writer) {
  std::size_t s = 0, t = 0;
  for (std::size_t i = 0; i < share.pairs.size(); ++i) {
    const Share::Pair& pair = share.pairs[i];
    ++counts.lines;
    if (pair.dropped) {
      Dropped& dropped = counts.dropped[static_cast<std::size_t>(*pair.dropped)];
      if (dropped.pairs++ == 0) dropped.first_line = counts.lines;
      continue;
    }
    const std::span source_ids = std::span(share.source_ids).subspan(s, pair.source_end - s);
    const std::span target_ids = std::span(share.target_ids).subspan(t, pair.target_end - t);
    s = pair.source_end;
    t = pair.target_end;
    ++counts.kept;
    counts.source_tokens += static_cast<std::int64_t>(source_ids.size());
    counts.target_tokens += static_cast<std::int64_t>(target_ids.size());
    writer.set_tokens(kSource, source_ids);
    writer.set_tokens(kTarget, target_ids);
    writer.set_number(kLine, static_cast<std::uint64_t>(counts.lines));
    if (keep_text) {
      writer.set_text(kSourceText, source[first + i]);
      writer.set_text(kTargetText, target[first + i]);
    }
    writer.end_row();
  }
}

}  // namespace

PairReader::PairReader(TextPair files)
    : files_(std::move(files)), source_(files_.source), target_(files_.target) {}

std::size_t PairReader::next(std::size_t most, std::vector<std::string>& source,
                             std::vector<std::string>& target) {
  source.resize(std::max(source.size(), most));
  target.resize(std::max(target.size(), most));
  for (std::size_t n = 0; n < most; ++n) {
    const auto s = source_.next(), t = target_.next();
    if (s.has_value() != t.has_value()) unequal(!s.has_value());
    if (!s) return n;
    source[n].assign(*s);
    target[n].assign(*t);
  }
  return most;
}

void PairReader::unequal(bool source_ended) {
  LineReader& longer = source_ended ? target_ : source_;
  while (longer.next()) {
  }
  throw UserError(
      fmt::format("{}: {} has {} lines but {} has {}. Line k of one must translate line k of the "
                  "other, so they "
                  "must match. Compare 'wc -l' before and after each cleaning step; a blank line "
                  "dropped on one "
                  "side is the usual cause.",
                  files_.setting, files_.source.string(), source_.line_number(),
                  files_.target.string(), target_.line_number()));
}

std::string PairCounts::description() const {
  std::string text = fmt::format("{} pairs, {} kept", lines, kept);
  const char* separator = "; dropped: ";
  for (std::size_t r = 0; r < dropped.size(); ++r) {
    if (dropped[r].pairs == 0) continue;
    text += fmt::format("{}{} {} (first: line {})", std::exchange(separator, ", "),
                        dropped[r].pairs, kDropReasons[r], dropped[r].first_line);
  }
  return text;
}

PairCounts encode_pairs(const TextPair& files, const SubwordPair& subwords,
                        const EncodeSettings& settings, const std::filesystem::path& corpus) {
  PairReader reader(files);
  CorpusWriter writer(corpus, columns(subwords, settings.keep_text));
  std::vector<Share> shares;
  shares.reserve(static_cast<std::size_t>(settings.threads));
  for (int t = 0; t < settings.threads; ++t) shares.emplace_back(subwords);
  const Context ctx(Device::cpu, settings.threads, 0);
  PairCounts counts;
  std::vector<std::string> source, target;
  while (const std::size_t lines = reader.next(kBlockLines, source, target)) {
    const auto first_line = [&](std::size_t share) { return lines * share / shares.size(); };
    parallel_for(ctx, settings.threads, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto t = static_cast<std::size_t>(begin); t < static_cast<std::size_t>(end); ++t) {
        shares[t].source_ids.clear();
        shares[t].target_ids.clear();
        shares[t].pairs.clear();
        for (std::size_t i = first_line(t); i < first_line(t + 1); ++i)
          shares[t].encode(settings, source[i], target[i]);
      }
    });
    const std::int64_t before = counts.lines;
    for (std::size_t t = 0; t < shares.size(); ++t)
      write_share(shares[t], first_line(t), source, target, settings.keep_text, counts, writer);
    if (counts.lines / kLinesPerReport > before / kLinesPerReport)
      spdlog::info("[data] {}: {} lines encoded", files.setting, counts.lines);
  }
  if (counts.kept == 0) {
    throw UserError(fmt::format("{}: no pair of {} and {} can be used: {}.", files.setting,
                                files.source.string(), files.target.string(),
                                counts.description()));
  }
  writer.commit({{"source", files.source.string()},
                 {"target", files.target.string()},
                 {"subwords.source", subwords.source->hash()},
                 {"subwords.target", subwords.target->hash()}});
  return counts;
}

}  // namespace octavo
