#include "data/held_out.h"

#include "data/sentence_ids.h"

namespace octavo {

std::vector<HeldOutBatch> held_out_batches(const Corpus& corpus, const Vocabulary& source,
                                           const Vocabulary& target, int rank, int ranks,
                                           const BatchLimits& limits) {
  const std::size_t source_column = corpus.column("source"),
                    target_column = corpus.column("target");
  std::vector<PairLength> lengths;
  std::vector<std::int64_t> source_begins, target_begins;
  std::int64_t source_tokens = 0, target_tokens = 0;
  for (std::int64_t row = 0; row < corpus.rows(); ++row) {
    lengths.push_back({.source = corpus.length(source_column, row) + 1,
                       .target = corpus.length(target_column, row) + 1});
    source_begins.push_back(source_tokens);
    target_begins.push_back(target_tokens);
    source_tokens += lengths.back().source;
    target_tokens += lengths.back().target;
  }
  Partition cut;
  partition(
      lengths, ranks, limits, [&](std::uint32_t i) { return describe_row(corpus, i); }, cut);

  std::vector<HeldOutBatch> batches;
  std::vector<std::int32_t> source_ids, target_ids;
  for (const MicroBatch& micro : cut.of_rank(rank)) {
    HeldOutBatch& out = batches.emplace_back();
    for (const std::uint32_t row : cut.sentences(micro)) {
      source_ids.clear();
      target_ids.clear();
      append_sentence(corpus, source_column, row, source, source_ids);
      append_sentence(corpus, target_column, row, target, target_ids);
      out.batch.add(source_ids, target_ids, target.bos(), source_begins[row], target_begins[row]);
      out.rows.push_back(row);
    }
    out.batch.finish();
  }
  return batches;
}

}  // namespace octavo
