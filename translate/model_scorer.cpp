#include "translate/model_scorer.h"

#include <algorithm>

#include "model/ops/top_k.h"

namespace octavo {
namespace {

/// Logits are read again as soon as they are written: as many rows at a time as a core's second
/// cache holds, but enough for the weight to be read seldom.
constexpr std::int64_t kLogitBytes = 1 << 20, kLeastRows = 32;

std::int64_t rows_at_a_time(const Transformer& model, DType type) {
  const std::int64_t row =
      model.padded_target_vocabulary() * static_cast<std::int64_t>(bytes_of(type));
  return std::max(kLogitBytes / row / kDecodeRowMultiple * kDecodeRowMultiple, kLeastRows);
}

/// Element [row, column] of a 2-D tensor in host memory.
double element(const Tensor& t, std::int64_t row, std::int64_t column) {
  const std::int64_t i = row * t.row_stride() + column;
  switch (t.dtype()) {
    case DType::f64:
      return t.data<double>()[i];
    case DType::bf16:
      return static_cast<double>(t.data<bfloat16>()[i]);
    default:
      return t.data<float>()[i];
  }
}

}  // namespace

ModelScorer::ModelScorer(const Transformer& model, const Pass& pass, const PackedTokens& source,
                         Tensor memory_MD, const Options& options)
    : model_(model),
      pass_(pass),
      options_(options),
      log_probabilities_(pass.allocate_statistics({options.max_rows, options.k})),
      ids_(pass.memory.allocate({options.max_rows, options.k}, DType::i32)),
      decoder_(model, pass, source, memory_MD, options.max_rows, options.max_steps) {
  const std::int64_t rows = std::min(rows_at_a_time(model, pass.parameters.compute_type()),
                                     round_up(options.max_rows, kDecodeRowMultiple));
  logits_ = pass.allocate({rows, model.padded_target_vocabulary()});
  read_.reserve(static_cast<std::size_t>(options.max_rows * options.k));
  eos_.resize(static_cast<std::size_t>(options.max_rows));
}

void ModelScorer::compute(std::span<const std::int32_t> newest) {
  const std::int64_t R = decoder_.rows(), most = logits_.dim(0);
  const Tensor output = decoder_.step(newest);
  for (std::int64_t first = 0; first < R; first += most) {
    find_pieces(output, first, std::min(most, R - first));
  }
}

void ModelScorer::find_pieces(const Tensor& output, std::int64_t first, std::int64_t rows) {
  const std::int64_t padded = round_up(rows, kDecodeRowMultiple);
  model_.project(pass_, output.rows(first, padded), logits_.rows(0, padded));
  top_k(pass_.ctx,
        {.logits = logits_.rows(0, rows),
         .vocabulary = model_.target_vocabulary(),
         .k = options_.k,
         .banned = options_.never_generated},
        log_probabilities_.rows(first, rows), ids_.rows(first, rows));
  if (pass_.ctx.device() == Device::plan) return;
  for (std::int64_t r = 0; r < rows; ++r) {
    eos_[static_cast<std::size_t>(first + r)] = eos_log_probability(first + r, r);
  }
}

// Differences of logits are differences of log-probabilities.
double ModelScorer::eos_log_probability(std::int64_t row, std::int64_t logit_row) const {
  const std::int32_t likeliest = ids_.data<std::int32_t>()[row * options_.k];
  return element(log_probabilities_, row, 0) +
         (element(logits_, logit_row, options_.eos) - element(logits_, logit_row, likeliest));
}

StepScorer::Pieces ModelScorer::step(std::span<const std::int32_t> newest) {
  compute(newest);
  const std::int64_t R = decoder_.rows(), k = options_.k;
  read_.clear();
  for (std::int64_t r = 0; r < R; ++r) {
    for (std::int64_t i = 0; i < k; ++i) read_.push_back(element(log_probabilities_, r, i));
  }
  return {.k = k,
          .log_probabilities = read_,
          .ids = {ids_.data<std::int32_t>(), static_cast<std::size_t>(R * k)},
          .eos = {eos_.data(), static_cast<std::size_t>(R)}};
}

void ModelScorer::select(std::span<const std::int32_t> parents,
                         std::span<const std::int32_t> rows) {
  decoder_.select(parents, rows);
}

}  // namespace octavo
