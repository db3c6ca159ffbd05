#include "model/incremental_decoder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/model_fixture.h"

namespace octavo {
namespace {

using testkit::TestModel;

constexpr std::int64_t kVocabulary = 19;

struct Case {
  NormPlace norm;
  DType type;
  double tolerance;
};

class IncrementalDecoderTest : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, IncrementalDecoderTest,
                         ::testing::Values(Case{NormPlace::post, DType::f64, 1e-12},
                                           Case{NormPlace::pre, DType::f64, 1e-12},
                                           Case{NormPlace::post, DType::f32, 1e-4},
                                           Case{NormPlace::pre, DType::bf16, 0.2}));

double at(const Tensor& t, std::int64_t row, std::int64_t column) {
  const std::int64_t i = row * t.row_stride() + column;
  switch (t.dtype()) {
    case DType::f64:
      return static_cast<double*>(t.raw())[i];
    case DType::f32:
      return static_cast<double>(static_cast<float*>(t.raw())[i]);
    default:
      return static_cast<double>(static_cast<bfloat16*>(t.raw())[i]);
  }
}

/// log p(next | source, prefix) of a prefix (BOS left out), by the whole model without a cache.
double log_likelihood(TestModel& m, const std::vector<std::int32_t>& source,
                      const std::vector<std::int32_t>& prefix, std::int32_t next) {
  std::vector<std::int32_t> target = prefix;
  target.push_back(next);
  const HostBatch with = testkit::batch_of({{source, target}});
  double sum = m.evaluate(with, 0).nll;
  if (!prefix.empty()) sum -= m.evaluate(testkit::batch_of({{source, prefix}}), 0).nll;
  return -sum;
}

// Hypotheses branch, swap places, die and leave whole sentences without rows; every step's
// distribution must be what the whole model says of that prefix.
TEST_P(IncrementalDecoderTest, EqualsTheWholeModelOnEveryPrefix) {
  ModelConfig config;
  config.width = 16;
  config.hidden = 24;
  config.heads = 2;
  config.encoder_layers = 1;
  config.decoder_layers = 2;
  config.norm = GetParam().norm;
  config.max_positions = 30;
  TestModel m(config, kVocabulary, GetParam().type);
  m.parameters.initialise(m.context, 9);

  const std::vector<std::vector<std::int32_t>> sources{{5, 6, 7, 2}, {2}, {9, 4, 11, 12, 13, 2}};
  PackedTokensBuilder builder;
  for (const auto& s : sources) builder.add(s, 0);
  const PackedTokens packed = builder.finish();
  const Pass pass = m.pass();
  IncrementalDecoder decoder(m.model, pass, packed, m.model.encode(pass, packed), 9, 5);

  struct Step {
    std::vector<std::int32_t> parents, rows, ids;
  };
  const std::vector<Step> steps{
      {{}, {}, {1, 1, 1}},
      {{0, 0, 0, 1, 2, 2}, {3, 1, 2}, {4, 5, 6, 7, 8, 9}},
      {{2, 0, 5, 4, 4}, {2, 0, 3}, {10, 11, 12, 13, 14}},  // sentence 1 is done
      {{1, 0, 2, 2}, {2, 0, 2}, {15, 16, 17, 18}},
      {{3}, {0, 0, 1}, {4}}};
  std::vector<std::vector<std::int32_t>> prefixes{{}, {}, {}};
  std::vector<std::size_t> owners{0, 1, 2};
  for (const Step& step : steps) {
    if (!step.parents.empty()) {
      decoder.select(step.parents, step.rows);
      std::vector<std::vector<std::int32_t>> next;
      std::vector<std::size_t> next_owners;
      for (std::size_t r = 0; r < step.parents.size(); ++r) {
        const auto parent = static_cast<std::size_t>(step.parents[r]);
        next.push_back(prefixes[parent]);
        next.back().push_back(step.ids[r]);
        next_owners.push_back(owners[parent]);
      }
      prefixes = next;
      owners = next_owners;
    }
    const ArenaScope scope(pass.memory);
    const Tensor output = decoder.step(step.ids);
    const Tensor logits = pass.allocate({output.dim(0), m.model.padded_target_vocabulary()});
    m.model.project(pass, output, logits);
    for (std::size_t r = 0; r < prefixes.size(); ++r) {
      double total = 0;
      for (std::int64_t v = 0; v < kVocabulary; ++v) {
        total += std::exp(at(logits, static_cast<std::int64_t>(r), v));
      }
      const double got = at(logits, static_cast<std::int64_t>(r), 3) - std::log(total);
      EXPECT_NEAR(got, log_likelihood(m, sources[owners[r]], prefixes[r], 3), GetParam().tolerance)
          << "row " << r << " with a prefix of " << prefixes[r].size();
    }
  }
  EXPECT_THROW(decoder.step(std::vector<std::int32_t>{4}), InternalError);  // beyond max_steps
}

}  // namespace
}  // namespace octavo
