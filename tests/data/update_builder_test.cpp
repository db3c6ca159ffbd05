#include "data/update_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/error.h"
#include "data/held_out.h"
#include "data/sentence_ids.h"
#include "tests/data/training_sample.h"
#include "tests/testkit/child.h"

namespace octavo {
namespace {

using ::testing::HasSubstr;
using testkit::message_of;

const TrainingSample& sample() {
  static const TrainingSample the_sample;
  return the_sample;
}

std::vector<std::int32_t> ids_of(const PackedTokens& side, std::int64_t sentence) {
  const std::int32_t* offsets = side.offsets.data<std::int32_t>();
  const std::int32_t* ids = side.ids.data<std::int32_t>();
  return {ids + offsets[sentence], ids + offsets[sentence + 1]};
}

/// A side's tokens by ordinal.
void collect(const PackedTokens& side, const std::int32_t* values,
             std::map<std::int64_t, std::int32_t>& by_ordinal) {
  for (std::int64_t i = 0; i < side.tokens; ++i) {
    const bool fresh = by_ordinal.emplace(side.ordinals.data<std::int64_t>()[i], values[i]).second;
    EXPECT_TRUE(fresh) << "two tokens with one ordinal";
  }
}

struct Update {
  std::map<std::int64_t, std::int32_t> source, target, labels;
  std::int64_t micro_batches = 0, target_tokens = 0;
};

/// The n-th update of all ranks together.
Update gather(int ranks, BatchLimits limits, int n, std::optional<double> sampling) {
  Update all;
  for (int rank = 0; rank < ranks; ++rank) {
    UpdateSettings settings = small_updates(rank, ranks);
    settings.limits = limits;
    UpdateBuilder builder(sample().training(sampling), settings, {});
    UpdateBatches update;
    for (int i = 0; i <= n; ++i) builder.build(update);
    for (const HostBatch& micro : update.micro_batches()) {
      const TokenBatch& b = micro.batch();
      collect(b.source, b.source.ids.data<std::int32_t>(), all.source);
      collect(b.target, b.target.ids.data<std::int32_t>(), all.target);
      collect(b.target, b.labels.data<std::int32_t>(), all.labels);
      ++all.micro_batches;
    }
    all.target_tokens = update.target_tokens;
  }
  return all;
}

TEST(UpdateBuilder, GivesTheSentencesItNames) {
  for (const auto sampling : {std::optional<double>(), std::optional<double>(0.1)}) {
    UpdateBuilder builder(sample().training(sampling), small_updates(), {});
    UpdateBatches update;
    for (int k = 0; k < 20; ++k) {
      builder.build(update);
      std::multiset<std::pair<std::string, std::string>> named, given;
      for (const SentenceRef r : update.references) {
        const Corpus& corpus = sample().data->train[r.corpus];
        named.emplace(corpus.text(corpus.column("source_text"), r.index),
                      corpus.text(corpus.column("target_text"), r.index));
      }
      const Subwords& subwords = *sample().data->subwords.source;
      const Vocabulary& v = subwords.vocabulary();
      for (const HostBatch& micro : update.micro_batches()) {
        const TokenBatch& b = micro.batch();
        EXPECT_LE(b.source.rows, 1024);
        EXPECT_LE(b.target.rows, 1024);
        EXPECT_LE(b.source.sentences, 64);
        for (std::int64_t s = 0; s < b.source.sentences; ++s) {
          const auto source = ids_of(b.source, s), target = ids_of(b.target, s);
          EXPECT_EQ(source.back(), v.eos());
          EXPECT_EQ(target.front(), v.bos());
          given.emplace(subwords.decode(source), subwords.decode(target));
        }
      }
      EXPECT_EQ(given, named);
      EXPECT_EQ(update.sentences, static_cast<std::int64_t>(named.size()));
    }
  }
}

TEST(UpdateBuilder, RanksAndLimitsChangeTheCutAndNothingElse) {
  BatchLimits wide = small_updates().limits, narrow = wide;
  wide.source_tokens = wide.target_tokens = 100000;
  narrow.source_tokens = narrow.target_tokens = 384;
  for (const auto sampling : {std::optional<double>(), std::optional<double>(0.1)}) {
    const Update one = gather(1, wide, 3, sampling);
    // Ordinals count each side's tokens from 0 without a gap.
    EXPECT_EQ(one.source.rbegin()->first + 1, static_cast<std::int64_t>(one.source.size()));
    EXPECT_EQ(one.target.rbegin()->first + 1, static_cast<std::int64_t>(one.target.size()));
    for (const int ranks : {1, 2, 5, 40}) {
      const Update many = gather(ranks, narrow, 3, sampling);
      EXPECT_EQ(many.source, one.source);
      EXPECT_EQ(many.target, one.target);
      EXPECT_EQ(many.labels, one.labels);
      EXPECT_EQ(many.target_tokens, static_cast<std::int64_t>(one.target.size()));
      EXPECT_GT(many.micro_batches, one.micro_batches);
    }
  }
}

TEST(UpdateBuilder, GoesOnFromAnyCursorBitwise) {
  for (const auto sampling : {std::optional<double>(), std::optional<double>(0.1)}) {
    const TrainingData data = sample().training(sampling);
    std::vector<std::string> whole;
    std::vector<Cursor> cursors{{}};
    UpdateBatches update;
    {
      UpdateBuilder builder(data, small_updates(), {});
      for (int k = 0; k < 45; ++k) {
        builder.build(update);
        whole.push_back(bytes_of(update));
        EXPECT_EQ(update.cursor, cursors.back());
        cursors.push_back(update.next);
      }
      ASSERT_GE(update.next.epoch, 2) << "the sample has become larger: no epoch ends here";
    }
    for (const std::size_t from : {0, 1, 7, 13, 14, 15, 16, 17, 30, 44}) {
      UpdateBuilder builder(data, small_updates(), cursors[from]);
      for (std::size_t k = from; k < std::min<std::size_t>(from + 20, whole.size()); ++k) {
        builder.build(update);
        ASSERT_EQ(bytes_of(update), whole[k]) << "from " << from << ", update " << k;
      }
    }
  }
}

TEST(UpdateBuilder, AnEpochShowsEachSentenceAsItsWeightSays) {
  UpdateBuilder builder(sample().training(std::nullopt), small_updates(), {});
  UpdateBatches update;
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> seen;
  for (builder.build(update); update.cursor.epoch == 0; builder.build(update)) {
    for (const SentenceRef r : update.references) ++seen[{r.corpus, r.index}];
    EXPECT_TRUE(update.target_tokens >= 1500 || update.next.epoch == 1);
    EXPECT_LT(update.target_tokens, 1500 + 256);
  }
  std::map<std::uint32_t, int> draws;
  for (const auto& [sentence, times] : seen) draws[sentence.first] += times;
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(sample().data->train[0].rows() +
                                                  sample().data->train[1].rows()));
  EXPECT_EQ(draws[0], sample().data->train[0].rows());
  EXPECT_EQ(draws[1], sample().data->train[1].rows() * 3 / 2);
}

TEST(UpdateBuilder, SegmentationsAreDrawnAnewForEachEpochAndSeed) {
  // By sentence: all segmentations seen of its target, in one epoch.
  const auto epoch = [&](std::int64_t number, std::uint64_t seed) {
    UpdateSettings settings = small_updates();
    settings.seed = seed;
    UpdateBuilder builder(sample().training(0.1), settings, {.epoch = number, .update = 0});
    std::map<std::string, std::set<std::vector<std::int32_t>>> seen;
    UpdateBatches update;
    for (builder.build(update); update.cursor.epoch == number; builder.build(update)) {
      for (const HostBatch& micro : update.micro_batches()) {
        const PackedTokens& side = micro.batch().target;
        for (std::int64_t s = 0; s < side.sentences; ++s) {
          const auto ids = ids_of(side, s);
          seen[sample().data->subwords.target->decode(ids)].insert(ids);
        }
      }
    }
    return seen;
  };
  const auto first = epoch(0, 1), second = epoch(1, 1), other = epoch(0, 2);
  int differ = 0, differ_by_seed = 0, twice = 0;
  for (const auto& [text, ids] : first) {
    differ += second.at(text) != ids;
    differ_by_seed += other.at(text) != ids;
    twice += ids.size() > 1;  // seen more than once in the epoch, and cut otherwise
  }
  EXPECT_GT(differ, static_cast<int>(first.size()) / 2);
  EXPECT_GT(differ_by_seed, static_cast<int>(first.size()) / 2);
  EXPECT_GT(twice, 10);
  EXPECT_EQ(epoch(0, 1), first);
}

TEST(UpdateBuilder, ADrawnSegmentationThatIsTooLongGivesWay) {
  TrainingData drawn = sample().training(0.9), plain = sample().training(std::nullopt);
  // As short as the prepared sentences allow.
  std::int32_t longest = 0;
  for (const Corpus& corpus : sample().data->train) {
    for (std::int64_t r = 0; r < corpus.rows(); ++r) {
      for (const char* side : {"source", "target"})
        longest = std::max(longest, corpus.length(corpus.column(side), r) + 1);
    }
  }
  UpdateSettings settings = small_updates();
  settings.limits.longest = drawn.max_length = longest;
  settings.tokens_per_update = 1;  // one sentence an update
  UpdateBuilder a(drawn, settings, {}), b(plain, settings, {});
  UpdateBatches x, y;
  int given_way = 0, kept = 0;
  for (int k = 0; k < 300; ++k) {
    a.build(x);
    b.build(y);
    ASSERT_EQ(x.references, y.references);
    ASSERT_LE(x.target_tokens, longest);
    const auto drawn_ids = ids_of(x.micro_batches()[0].batch().target, 0);
    const bool same = drawn_ids == ids_of(y.micro_batches()[0].batch().target, 0);
    (same ? given_way : kept) += 1;
  }
  EXPECT_GT(given_way, 20);
  EXPECT_GT(kept, 20);
}

TEST(UpdateBuilder, NamesTheSentenceThatDoesNotFit) {
  UpdateSettings settings = small_updates();
  settings.limits.longest = 20;
  UpdateBuilder builder(sample().training(std::nullopt), settings, {});
  UpdateBatches update;
  EXPECT_THAT(message_of<UserError>([&] {
                for (int k = 0; k < 20; ++k) builder.build(update);
              }),
              ::testing::ContainsRegex("train\\.en line [0-9]+: [0-9]+ source and [0-9]+ target"));
}

TEST(UpdateBuilder, ChecksWhatItIsGiven) {
  EXPECT_THAT(message_of<UserError>(
                  [&] { UpdateBuilder builder(sample().training(1.0), small_updates(), {}); }),
              HasSubstr("data.subwords.sample is 1"));
  // The same corpora under a model with fewer pieces.
  const Subwords small(read_file(sample().folder / "prepared/subwords.model"), "x");
  const testkit::TempFolder folder;
  CorpusWriter writer(folder / "x.corpus",
                      {{"source", ColumnType::tokens16}, {"target", ColumnType::tokens16}});
  writer.set_tokens(0, std::vector<std::int32_t>{5, 6});
  writer.set_tokens(1, std::vector<std::int32_t>{700});
  writer.end_row();
  writer.commit({});
  const Corpus corpus(folder / "x.corpus");
  TrainingData data{.corpora = {&corpus},
                    .weights = {1.0},
                    .source = &small,
                    .target = &small,
                    .sample = {},
                    .max_length = 256};
  UpdateBuilder builder(data, small_updates(), {});
  UpdateBatches update;
  EXPECT_THAT(message_of<UserError>([&] { builder.build(update); }),
              HasSubstr("the id 700 (" + (folder / "x.corpus").string() +
                        " row 0) is outside the vocabulary of 700"));
  data.sample = 0.1;
  EXPECT_THAT(message_of<UserError>([&] { UpdateBuilder b(data, small_updates(), {}); }),
              HasSubstr("no column 'source_text'"));
}

TEST(HeldOut, RanksShareEveryRowOnce) {
  const Corpus& dev = *sample().data->dev;
  const Vocabulary& v = sample().data->subwords.source->vocabulary();
  for (const int ranks : {1, 3, 100}) {
    std::map<std::int64_t, std::int32_t> source, target;
    std::multiset<std::int64_t> rows;
    for (int rank = 0; rank < ranks; ++rank) {
      for (const HeldOutBatch& held :
           held_out_batches(dev, v, v, rank, ranks, small_updates().limits)) {
        const TokenBatch& b = held.batch.batch();
        ASSERT_EQ(b.source.sentences, static_cast<std::int64_t>(held.rows.size()));
        for (std::int64_t s = 0; s < b.source.sentences; ++s) {
          const std::int64_t row = held.rows[static_cast<std::size_t>(s)];
          rows.insert(row);
          EXPECT_EQ(sample().data->subwords.source->decode(ids_of(b.source, s)),
                    dev.text(dev.column("source_text"), row));
          EXPECT_EQ(sample().data->subwords.target->decode(ids_of(b.target, s)),
                    dev.text(dev.column("target_text"), row));
        }
        collect(b.source, b.source.ids.data<std::int32_t>(), source);
        collect(b.target, b.target.ids.data<std::int32_t>(), target);
      }
    }
    EXPECT_EQ(rows.size(), 60u);
    EXPECT_EQ(std::set(rows.begin(), rows.end()).size(), 60u);
    EXPECT_EQ(static_cast<std::int64_t>(target.size()), dev.elements(dev.column("target")) + 60);
    EXPECT_EQ(target.rbegin()->first + 1, static_cast<std::int64_t>(target.size()));
  }
}

}  // namespace
}  // namespace octavo
