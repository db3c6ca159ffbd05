#include "model/incremental_decoder.h"

#include <algorithm>
#include <numeric>

#include "model/ops/cached_attention.h"
#include "model/ops/elementwise.h"

namespace octavo {

IncrementalDecoder::IncrementalDecoder(const Transformer& model, const Pass& pass,
                                       const PackedTokens& source, Tensor memory_MD,
                                       std::int64_t max_rows, std::int64_t max_steps)
    : model_(model),
      pass_(pass),
      source_(source),
      max_rows_(round_up(max_rows, kDecodeRowMultiple)),
      slots_(max_rows_, max_steps) {
  expect(!pass.random.training, "IncrementalDecoder: dropout must be off");
  expect(max_rows >= source.sentences, "IncrementalDecoder: fewer rows than sentences");
  const Tensor past = pass.allocate({slots_.capacity(), pitch_of_past()});
  std::int64_t column = 0;
  for (const Block& block : model.decoder().blocks()) {
    BlockState state;
    if (block.cross) {
      state.projected = pass.allocate({source.rows, 2 * block.attention->inner_width()});
      block.attention->project(pass, memory_MD, state.projected);
    } else if (block.attention) {
      const std::int64_t width = 2 * block.attention->inner_width();
      state.projected = past.columns(column, width);
      column += width;
    }
    states_.push_back(state);
  }
  output_ = pass.allocate({max_rows_, model.config().width});
  const auto rows = static_cast<std::size_t>(max_rows_);
  source_slots_.resize(rows * static_cast<std::size_t>(source.longest));
  source_lengths_.resize(rows);
  ids_.resize(rows);
  positions_.resize(rows);
  offsets_.resize(static_cast<std::size_t>(source.sentences) + 1);
  const std::vector<std::int32_t> one_each(static_cast<std::size_t>(source.sentences), 1);
  set_rows(one_each);
}

/// Elements from one slot of the past to the next. A slot holds a token's k and v of every layer,
/// so that no more memory is touched than slots were alive at once. An odd number of cache lines:
/// slots a power of two apart would evict one another.
std::int64_t IncrementalDecoder::pitch_of_past() const {
  std::int64_t columns = 0;
  for (const Block& block : model_.decoder().blocks()) {
    if (block.attention && !block.cross) columns += 2 * block.attention->inner_width();
  }
  const auto line =
      Arena::kAlignment / static_cast<std::int64_t>(bytes_of(pass_.parameters.compute_type()));
  return (((columns + line - 1) / line) | 1) * line;
}

void IncrementalDecoder::set_rows(std::span<const std::int32_t> rows_per_sentence) {
  rows_ = PackedTokens();
  rows_.sentences = source_.sentences;
  offsets_[0] = 0;
  for (std::size_t b = 0; b < rows_per_sentence.size(); ++b) {
    offsets_[b + 1] = offsets_[b] + rows_per_sentence[b];
  }
  rows_.tokens = offsets_.back();
  point_at_sources();
  rows_.rows = round_up(rows_.tokens, kDecodeRowMultiple);
  expect(rows_.rows <= max_rows_, "IncrementalDecoder: more rows than were announced");
  rows_.ids = Tensor(ids_.data(), {rows_.rows}, DType::i32);
  rows_.positions = Tensor(positions_.data(), {rows_.rows}, DType::i32);
}

/// Every row sees the tokens of its sentence's source. A plan knows no sources.
void IncrementalDecoder::point_at_sources() {
  if (pass_.ctx.device() == Device::plan) return;
  const auto* begins = source_.offsets.data<std::int32_t>();
  for (std::size_t b = 0; b + 1 < offsets_.size(); ++b) {
    for (std::int64_t r = offsets_[b]; r < offsets_[b + 1]; ++r) {
      source_lengths_[static_cast<std::size_t>(r)] = begins[b + 1] - begins[b];
      const auto first = source_slots_.begin() + r * source_.longest;
      std::iota(first, first + (begins[b + 1] - begins[b]), begins[b]);
    }
  }
}

Tensor IncrementalDecoder::step(std::span<const std::int32_t> ids) {
  expect(static_cast<std::int64_t>(ids.size()) == rows_.tokens,
         "IncrementalDecoder::step: another number of rows than alive");
  const ArenaScope scope(pass_.memory);
  std::copy(ids.begin(), ids.end(), ids_.begin());
  std::fill(ids_.begin() + rows_.tokens, ids_.begin() + rows_.rows, 0);
  std::fill(positions_.begin(), positions_.end(), static_cast<std::int32_t>(steps()));
  slots_.append(rows_.tokens);

  const std::int64_t R = rows_.rows, D = model_.config().width;
  const Stack& decoder = model_.decoder();
  Tensor residual = pass_.allocate({R, D});
  model_.target_side().forward(pass_, rows_, residual);
  Tensor input = residual;
  const ResidualNormSaved unused{.sum = residual,
                                 .mean = pass_.allocate_statistics({R}),
                                 .rstd = pass_.allocate_statistics({R})};
  if (decoder.pre_norm()) {
    input = pass_.allocate({R, D});
    ResidualNormArgs norm = decoder.norm_arguments(pass_, decoder.first_norm());
    norm.residual = residual;
    residual_norm_forward(pass_.ctx, norm, input, unused);
  }
  for (std::size_t i = 0; i < decoder.blocks().size(); ++i) {
    const bool last = i + 1 == decoder.blocks().size();
    const Tensor branch = last ? output_.rows(0, R) : pass_.allocate({R, D});
    run_block(i, input, branch);
    ResidualNormArgs norm = decoder.norm_arguments(pass_, decoder.blocks()[i].norm);
    norm.residual = residual;
    norm.branch = branch;
    residual_norm_forward(pass_.ctx, norm, branch, unused);  // the sum replaces the residual
    input = branch;
    if (!decoder.pre_norm()) residual = branch;
  }
  return output_.rows(0, R);
}

void IncrementalDecoder::run_block(std::size_t i, const Tensor& input, const Tensor& branch) {
  const Block& block = model_.decoder().blocks()[i];
  if (block.feed_forward) {
    block.feed_forward->forward(pass_, rows_, input, branch);
  } else if (block.cross) {
    cross_attention(*block.attention, states_[i], input, branch);
  } else {
    self_attention(*block.attention, states_[i], input, branch);
  }
}

void IncrementalDecoder::self_attention(const MultiHeadAttention& layer, const BlockState& state,
                                        const Tensor& input, Tensor y) {
  const std::int64_t R = rows_.rows, P = layer.inner_width();
  const Tensor fresh = pass_.allocate({R, 3 * P}), context = pass_.allocate({R, P});
  layer.project(pass_, input, fresh);
  scatter_rows(pass_.ctx, fresh.columns(P, 2 * P).rows(0, rows_.tokens), slots_.newest(),
               state.projected);
  cached_attention_forward(pass_.ctx,
                           {.spec = layer.spec(),
                            .q = fresh.columns(0, P).rows(0, rows_.tokens),
                            .cache = state.projected,
                            .slots = slots_.table(),
                            .steps = steps()},
                           context.rows(0, rows_.tokens));
  layer.project_output(pass_, context, y);
}

void IncrementalDecoder::cross_attention(const MultiHeadAttention& layer, const BlockState& state,
                                         const Tensor& input, Tensor y) {
  const std::int64_t R = rows_.rows, P = layer.inner_width();
  const Tensor queries = pass_.allocate({R, P});
  layer.project_queries(pass_, input, queries);
  const Tensor context = pass_.allocate({R, P});
  cached_attention_forward(
      pass_.ctx,
      {.spec = layer.spec(),
       .q = queries.rows(0, rows_.tokens),
       .cache = state.projected,
       .slots = Tensor(source_slots_.data(), {rows_.tokens, source_.longest}, DType::i32),
       .steps = source_.longest,
       .lengths = Tensor(source_lengths_.data(), {rows_.tokens}, DType::i32)},
      context.rows(0, rows_.tokens));
  layer.project_output(pass_, context, y);
}

void IncrementalDecoder::select(std::span<const std::int32_t> parents,
                                std::span<const std::int32_t> rows) {
  slots_.select(parents);
  set_rows(rows);
  expect(rows_.tokens == static_cast<std::int64_t>(parents.size()),
         "IncrementalDecoder::select: rows per sentence don't add up to the parents");
}

}  // namespace octavo
