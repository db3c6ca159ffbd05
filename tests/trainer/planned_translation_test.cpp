#include "trainer/planned_translation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "tests/testkit/child.h"
#include "trainer/memory_plan.h"

namespace octavo {
namespace {

constexpr std::int64_t kVocabulary = 1024;

PlannedTranslation planned(const ModelConfig& model, const TrainerConfig& trainer,
                           bool validates = false, std::int64_t vocabulary = kVocabulary) {
  return PlannedTranslation({.model = model,
                             .source_vocabulary = vocabulary,
                             .target_vocabulary = vocabulary,
                             .max_length = 100,
                             .trainer = trainer,
                             .search = {},
                             .validates = validates,
                             .threads = 1});
}

ModelConfig small_model() {
  ModelConfig model;
  model.width = 128;
  model.hidden = 512;
  model.heads = 4;
  model.encoder_layers = model.decoder_layers = 2;
  return model;
}

/// Products of forward alone, multiply and add counted as two, by the formulas of the paper.
double products(const ModelConfig& m, double sentences, double S, double T) {
  const auto D = static_cast<double>(m.width), F = static_cast<double>(m.hidden);
  const double source = sentences * S, target = sentences * T;
  const double encoder_layer = source * (4 * D * D + 2 * D * F) + 2 * source * S * D;
  // Cross-attention projects keys and values of the source; causal attention sees half the pairs.
  const double decoder_layer = target * (6 * D * D + 2 * D * F) + source * 2 * D * D +
                               target * (T + 1) * D + 2 * target * S * D;
  return 2 * (m.encoder_layers * encoder_layer + m.decoder_layers * decoder_layer +
              target * D * static_cast<double>(kVocabulary));
}

TEST(PlannedTranslation, FlopsAreThreeTimesThoseOfForwardAndALittleMore) {
  const ModelConfig model = small_model();
  const PlannedTranslation work = planned(model, {});
  for (const std::int64_t length : {32, 96}) {
    const auto L = static_cast<double>(length);
    const double ratio = static_cast<double>(work.flops(planned_batch(8, length, length))) /
                         (3 * products(model, 8, L, L));
    // Rows are whole multiples of 64 here. The rest: norms, softmax, dropout, sums; and attention's
    // scores, which backward computes once more.
    EXPECT_GT(ratio, 1.0);
    EXPECT_LT(ratio, 1.15);
  }
}

constexpr std::int64_t kOddVocabulary = 313;

/// What one micro-batch takes.
std::pair<std::int64_t, std::int64_t> taken(const ModelConfig& model, DType type, int threads,
                                            std::int64_t source, std::int64_t target) {
  const Transformer transformer(model, kOddVocabulary, kOddVocabulary);
  Context ctx(Device::plan, threads, 0);
  const Parameters parameters(transformer.table(), ctx, type, true);
  Arena memory;
  const Pass pass{ctx, parameters, memory, {.training = true, .seed = 0, .update = 0}};
  const TokenBatch batch = planned_batch({.sentences = std::min(source, target) / 2,
                                          .source_tokens = source,
                                          .target_tokens = target,
                                          .source_longest = 100,
                                          .target_longest = 100});
  Transformer::Saved saved;
  transformer.forward(pass, batch, {}, Tensor(nullptr, {2}, DType::f64), saved);
  transformer.backward(pass, batch, {}, saved, [](int) {});
  return {memory.high_water(), ctx.scratch().high_water()};
}

// The product library's workspace does not grow steadily with a product's rows.
TEST(MemoryPlan, ForeseesEveryPairOfRowCounts) {
  constexpr std::int64_t kMost = 1024;
  ModelConfig model = small_model();
  model.width = 64;
  model.hidden = 256;
  model.encoder_layers = model.decoder_layers = 1;
  for (const Precision precision : {Precision::float32, Precision::bf16}) {
    for (const int threads : {1, 2, 8}) {
      TrainerConfig trainer;
      trainer.precision = precision;
      const MemoryPlan plan =
          plan_memory(planned(model, trainer, false, kOddVocabulary), trainer, threads, kMost);
      for (std::int64_t source = 64; source <= kMost; source += 64) {
        for (std::int64_t target = 64; target <= kMost; target += 64) {
          const auto [activations, scratch] =
              taken(model, dtype_of(precision), threads, source, target);
          ASSERT_LE(activations, plan.activations) << source << " " << target;
          ASSERT_LE(scratch, plan.scratch) << source << " " << target << " " << threads;
        }
      }
    }
  }
}

TEST(PlannedTranslation, RecomputingTakesMoreWorkAndLessMemory) {
  TrainerConfig keeps, rebuilds;
  rebuilds.recompute = Recompute::layer;
  const PlannedTranslation a = planned(small_model(), keeps), b = planned(small_model(), rebuilds);
  const TokenBatch batch = planned_batch(8, 32, 32);
  EXPECT_GT(b.flops(batch), a.flops(batch) * 11 / 10);
  EXPECT_LT(plan_memory(b, rebuilds, 1, 4096).activations,
            plan_memory(a, keeps, 1, 4096).activations / 2);
}

TEST(PlannedTranslation, ValidationTakesMemoryOnlyWhereItHappens) {
  TrainerConfig trainer;
  trainer.validation.every_updates = 10;
  const PlannedTranslation with = planned(small_model(), trainer, true);
  EXPECT_GT(with.validation_bytes(false), 0);
  EXPECT_GE(with.validation_bytes(true),
            with.validation_bytes(false) + 4 * with.parameter_table().count());
  EXPECT_EQ(planned(small_model(), trainer, false).validation_bytes(true), 0);  // nothing held out
  EXPECT_EQ(planned(small_model(), {}, true).validation_bytes(true), 0);        // no schedule
}

TEST(MemoryPlan, AutoTakesTheLargestMicroBatchThatFits) {
  TrainerConfig trainer;
  trainer.tokens_per_update = 8192;
  const PlannedTranslation work = planned(small_model(), trainer);
  const MemoryPlan roomy = choose_plan(work, trainer, 1, std::int64_t{1} << 40);
  EXPECT_EQ(roomy.max_tokens, 8192);
  const MemoryPlan tight = choose_plan(work, trainer, 1, roomy.total() * 6 / 10);
  EXPECT_LT(tight.max_tokens, 8192);
  EXPECT_LE(tight.total(), roomy.total() * 6 / 10);
  const std::string refused =
      testkit::message_of<UserError>([&] { choose_plan(work, trainer, 1, tight.parameters); });
  EXPECT_NE(refused.find("Make the model smaller"), std::string::npos) << refused;
  EXPECT_EQ(refused.find("memory_gigabytes"), std::string::npos) << refused;
  trainer.max_tokens = 8192;
  trainer.memory_gigabytes = 0.001;
  const std::string large =
      testkit::message_of<UserError>([&] { choose_plan(work, trainer, 1, 1000000); });
  EXPECT_NE(large.find("trainer.recompute"), std::string::npos) << large;
  EXPECT_NE(large.find("memory_gigabytes"), std::string::npos) << large;
}

}  // namespace
}  // namespace octavo
