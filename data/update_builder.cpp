#include "data/update_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "data/sentence_ids.h"

namespace octavo {

namespace {

enum class Use : std::uint64_t { source = 3, target = 4 };

std::span<const std::int32_t> slice(const std::vector<std::int32_t>& ids,
                                    const std::vector<std::size_t>& begins, std::size_t i) {
  return std::span(ids).subspan(begins[i], begins[i + 1] - begins[i]);
}

void check(const TrainingData& data) {
  expect(data.corpora.size() == data.weights.size(), "TrainingData: a weight for each corpus");
  if (!data.sample) return;
  for (const Subwords* subwords : {data.source, data.target}) {
    if (subwords->kind() == SubwordKind::bpe && *data.sample >= 1) {
      throw UserError(fmt::format(
          "data.subwords.sample is {}, but with a bpe model it is the chance that a merge is left "
          "out: it must be below 1, and is usually 0.1.",
          *data.sample));
    }
  }
}

}  // namespace

std::string describe_sentence(const TrainingData& data, SentenceRef sentence) {
  return describe_row(*data.corpora[sentence.corpus], sentence.index);
}

UpdateBuilder::Side UpdateBuilder::make_side(const std::string& name,
                                             const Subwords& subwords) const {
  Side side{.subwords = &subwords,
            .encoder = SubwordEncoder(subwords),
            .columns = {},
            .text_columns = {},
            .ids = {},
            .begins = {}};
  for (const Corpus* corpus : data_.corpora) {
    side.columns.push_back(corpus->column(name));
    if (data_.sample) side.text_columns.push_back(corpus->column(name + "_text"));
  }
  return side;
}

UpdateBuilder::UpdateBuilder(const TrainingData& data, const UpdateSettings& settings, Cursor start)
    : data_((check(data), data)),
      settings_(settings),
      cursor_(start),
      source_(make_side("source", *data.source)),
      target_(make_side("target", *data.target)) {
  expect(settings.rank >= 0 && settings.rank < settings.ranks, "UpdateBuilder: no such rank");
  start_epoch();
  settle_cursor();
}

void UpdateBuilder::start_epoch() {
  std::vector<CorpusShare> shares;
  for (std::size_t c = 0; c < data_.corpora.size(); ++c)
    shares.push_back({.sentences = data_.corpora[c]->rows(), .weight = data_.weights[c]});
  plan_.emplace(EpochPlan::Settings{.seed = settings_.seed,
                                    .epoch = cursor_.epoch,
                                    .tokens_per_update = settings_.tokens_per_update},
                shares,
                [this](const EpochPlan& plan, std::int64_t first, std::span<std::int32_t> lengths) {
                  target_lengths(plan, first, lengths);
                });
}

void UpdateBuilder::target_lengths(const EpochPlan& plan, std::int64_t first,
                                   std::span<std::int32_t> lengths) {
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::int64_t draw = first + static_cast<std::int64_t>(i);
    const SentenceRef sentence = plan.sentence(draw);
    if (!data_.sample) {
      const Corpus& corpus = *data_.corpora[sentence.corpus];
      lengths[i] = corpus.length(target_.columns[sentence.corpus], sentence.index) + 1;
      continue;
    }
    scratch_.clear();
    append_ids(target_, plan.epoch(), draw, sentence, scratch_);
    lengths[i] = static_cast<std::int32_t>(scratch_.size());
  }
}

/// The ids of one draw, with EOS. Drawn segmentations depend on (seed, epoch, draw, side) alone.
void UpdateBuilder::append_ids(Side& side, std::int64_t epoch, std::int64_t draw,
                               SentenceRef sentence, std::vector<std::int32_t>& out) const {
  const Corpus& corpus = *data_.corpora[sentence.corpus];
  const Vocabulary& vocabulary = side.subwords->vocabulary();
  if (data_.sample) {
    const Use use = &side == &source_ ? Use::source : Use::target;
    RandomStream random(mix(mix(settings_.seed, static_cast<std::uint64_t>(epoch)),
                            static_cast<std::uint64_t>(draw), static_cast<std::uint64_t>(use)));
    const std::string_view text = corpus.text(side.text_columns[sentence.corpus], sentence.index);
    const std::size_t begin = out.size();
    side.encoder.sample(text, *data_.sample, random, out);
    out.push_back(vocabulary.eos());
    if (static_cast<std::int64_t>(out.size() - begin) <= data_.max_length) return;
    out.resize(begin);
  }
  append_sentence(corpus, side.columns[sentence.corpus], sentence.index, vocabulary, out);
}

/// Reads the sentences of `draws`: their ids, lengths and names.
void UpdateBuilder::read(DrawRange draws, UpdateBatches& out) {
  lengths_.clear();
  out.references.clear();
  for (Side* side : {&source_, &target_}) {
    side->ids.clear();
    side->begins.assign(1, 0);
  }
  const auto add = [&](Side& side, std::int64_t draw, SentenceRef sentence) {
    append_ids(side, cursor_.epoch, draw, sentence, side.ids);
    const std::size_t begin = side.begins.back();
    side.begins.push_back(side.ids.size());
    return static_cast<std::int32_t>(side.ids.size() - begin);
  };
  for (std::int64_t draw = draws.begin; draw < draws.end; ++draw) {
    const SentenceRef sentence = plan_->sentence(draw);
    out.references.push_back(sentence);
    const std::int32_t source = add(source_, draw, sentence);
    lengths_.push_back({.source = source, .target = add(target_, draw, sentence)});
  }
}

/// Fills a micro-batch from what read() left.
void UpdateBuilder::fill(const MicroBatch& micro, HostBatch& batch) const {
  batch.clear();
  for (const std::uint32_t i : partition_.sentences(micro)) {
    batch.add(slice(source_.ids, source_.begins, i), slice(target_.ids, target_.begins, i),
              target_.subwords->vocabulary().bos(), static_cast<std::int64_t>(source_.begins[i]),
              static_cast<std::int64_t>(target_.begins[i]));
  }
  batch.finish();
}

/// Goes on to the next epoch if this one has no update at the cursor.
void UpdateBuilder::settle_cursor() {
  if (plan_->has(cursor_.update)) return;
  cursor_ = {.epoch = cursor_.epoch + 1, .update = 0};
  start_epoch();
}

void UpdateBuilder::build(UpdateBatches& out) {
  const DrawRange draws = plan_->update(cursor_.update);
  read(draws, out);
  partition(
      lengths_, settings_.ranks, settings_.limits,
      [&](std::uint32_t i) { return describe_sentence(data_, out.references[i]); }, partition_);
  out.used_ = 0;
  for (const MicroBatch& micro : partition_.of_rank(settings_.rank)) {
    if (out.used_ == out.batches_.size()) out.batches_.emplace_back();
    fill(micro, out.batches_[out.used_++]);
  }
  out.sentences = draws.size();
  out.source_tokens = static_cast<std::int64_t>(source_.ids.size());
  out.target_tokens = static_cast<std::int64_t>(target_.ids.size());
  out.cursor = cursor_;
  ++cursor_.update;
  settle_cursor();
  out.next = cursor_;
}

}  // namespace octavo
