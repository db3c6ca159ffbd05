#include "translate/model_scorer.h"

#include "model/ops/top_k.h"

namespace octavo {
namespace {

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
                         Tensor memory_MD, const Sizes& sizes,
                         std::span<const std::int32_t> never_generated)
    : model_(model),
      pass_(pass),
      k_(sizes.k),
      never_generated_(never_generated),
      log_probabilities_(pass.allocate_statistics({sizes.max_rows, sizes.k})),
      ids_(pass.memory.allocate({sizes.max_rows, sizes.k}, DType::i32)),
      decoder_(model, pass, source, memory_MD, sizes.max_rows, sizes.max_steps) {
  read_.reserve(static_cast<std::size_t>(sizes.max_rows * sizes.k));
}

void ModelScorer::compute(std::span<const std::int32_t> newest) {
  const std::int64_t R = decoder_.rows();
  logits_ = decoder_.step(newest);
  top_k(pass_.ctx,
        {.logits = logits_,
         .vocabulary = model_.target_vocabulary(),
         .k = k_,
         .banned = never_generated_},
        log_probabilities_.rows(0, R), ids_.rows(0, R));
}

StepScorer::Pieces ModelScorer::step(std::span<const std::int32_t> newest) {
  compute(newest);
  const std::int64_t R = decoder_.rows();
  read_.clear();
  for (std::int64_t r = 0; r < R; ++r) {
    for (std::int64_t i = 0; i < k_; ++i) read_.push_back(element(log_probabilities_, r, i));
  }
  return {.k = k_,
          .log_probabilities = read_,
          .ids = {ids_.data<std::int32_t>(), static_cast<std::size_t>(R * k_)}};
}

double ModelScorer::log_probability(std::int64_t row, std::int32_t piece) {
  // Differences of logits are differences of log-probabilities.
  const std::int32_t likeliest = ids_.data<std::int32_t>()[row * k_];
  return element(log_probabilities_, row, 0) +
         (element(logits_, row, piece) - element(logits_, row, likeliest));
}

void ModelScorer::select(std::span<const std::int32_t> parents,
                         std::span<const std::int32_t> rows) {
  decoder_.select(parents, rows);
}

}  // namespace octavo
