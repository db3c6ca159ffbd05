#include "model/transformer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/philox.h"
#include "tests/model/model_fixture.h"
#include "tests/testkit/gradient.h"

namespace octavo {
namespace {

using testkit::batch_of;
using testkit::IdPair;
using testkit::TestModel;

constexpr std::int64_t kVocabulary = 23;

ModelConfig tiny(NormPlace norm = NormPlace::post) {
  ModelConfig config;
  config.width = 12;
  config.hidden = 20;
  config.heads = 3;
  config.encoder_layers = 2;
  config.decoder_layers = 2;
  config.norm = norm;
  config.max_positions = 40;
  config.dropout = 0.2;
  config.attention_dropout = 0.15;
  config.activation_dropout = 0.1;
  return config;
}

/// Pairs of very unequal lengths, 1 to 19 tokens, EOS counted.
std::vector<IdPair> random_pairs(int count, std::uint64_t seed) {
  RandomStream random(seed);
  const auto sentence = [&] {
    std::vector<std::int32_t> ids(random.below(19));
    for (auto& id : ids) id = static_cast<std::int32_t>(4 + random.below(kVocabulary - 4));
    ids.push_back(testkit::kEos);
    return ids;
  };
  std::vector<IdPair> pairs(static_cast<std::size_t>(count));
  for (IdPair& p : pairs) p = {sentence(), sentence()};
  return pairs;
}

constexpr StepRandom kDropout{.training = true, .seed = 7, .update = 3};

std::vector<double> gradient_of(const TestModel& m) {
  const Tensor g = m.parameters.flat_gradient();
  std::vector<double> out(static_cast<std::size_t>(g.elements()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = TestModel::get(g, static_cast<std::int64_t>(i));
  }
  return out;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (!(difference <= worst)) worst = difference;  // not a number is the worst, too
  }
  return worst;
}

class TransformerNorms : public ::testing::TestWithParam<NormPlace> {};
INSTANTIATE_TEST_SUITE_P(Both, TransformerNorms, ::testing::Values(NormPlace::post, NormPlace::pre),
                         [](const auto& test) {
                           return test.param == NormPlace::post ? "post" : "pre";
                         });

TEST_P(TransformerNorms, GradientsAgreeWithCentralDifferencesUnderDropout) {
  ModelConfig config = tiny(GetParam());
  config.activation = Activation::gelu;  // smooth: a relu's corner would spoil the differences
  config.positions = PositionKind::learned;
  TestModel m(config, kVocabulary, DType::f64);
  m.parameters.initialise(m.context, 5);
  const HostBatch batch = batch_of(random_pairs(5, 11));
  const Transformer::LossOptions options{.label_smoothing = 0.1};
  m.parameters.zero_gradients(m.context);
  m.forward_backward(batch, options, kDropout);
  const std::vector<double> saved = gradient_of(m);

  std::vector<testkit::GradientCheck> checks;  // three elements of every parameter
  for (const Parameter& p : m.model.table().parameters()) {
    const std::int64_t size = p.shape[0] * p.columns();
    for (const std::int64_t i : {std::int64_t{0}, size / 2 + 1, size - 1}) {
      checks.push_back({p.name, m.parameters.flat_master().rows(p.offset + i, 1),
                        Tensor(const_cast<double*>(saved.data()) + p.offset + i, {1}, DType::f64)});
    }
  }
  const auto loss = [&] { return m.forward_backward(batch, options, kDropout).loss; };
  EXPECT_EQ("", testkit::grad_mismatch(loss, checks, 2e-6));
}

TEST_P(TransformerNorms, PackedEqualsOneSentenceAtATime) {
  TestModel m(tiny(GetParam()), kVocabulary, DType::f64);
  m.parameters.initialise(m.context, 1);
  const std::vector<IdPair> pairs = random_pairs(7, 2);
  const Transformer::LossOptions options{.label_smoothing = 0.1, .gradient_scale = 0.01};
  m.parameters.zero_gradients(m.context);
  const double together = m.forward_backward(batch_of(pairs), options, kDropout).loss;
  const std::vector<double> expected = gradient_of(m);

  m.parameters.zero_gradients(m.context);
  double apart = 0;
  std::int64_t source = 0, target = 0;
  for (const IdPair& p : pairs) {
    apart += m.forward_backward(batch_of({p}, source, target), options, kDropout).loss;
    source += static_cast<std::int64_t>(p.source.size());
    target += static_cast<std::int64_t>(p.target.size());
  }
  EXPECT_NEAR(together, apart, 1e-10 * together);
  EXPECT_LT(largest_difference(expected, gradient_of(m)), 1e-12);
}

TEST_P(TransformerNorms, RecomputingALayerGivesTheSameBytes) {
  for (const DType type : {DType::f32, DType::bf16}) {
    TestModel m(tiny(GetParam()), kVocabulary, type);
    m.parameters.initialise(m.context, 1);
    const HostBatch batch = batch_of(random_pairs(9, 4));
    std::vector<double> gradients[2];
    std::int64_t memory[2];
    for (const Recompute recompute : {Recompute::none, Recompute::layer}) {
      m.parameters.zero_gradients(m.context);
      m.forward_backward(batch, {.label_smoothing = 0.1, .recompute = recompute}, kDropout);
      gradients[static_cast<int>(recompute)] = gradient_of(m);

      Context plan(Device::plan, 1, 0);
      Arena arena;
      const Parameters planned(m.model.table(), plan, type, true);
      Transformer::Saved saved;
      const Pass pass{plan, planned, arena, kDropout};
      const Transformer::LossOptions options{.recompute = recompute};
      m.model.forward(pass, batch.batch(), options, Tensor(nullptr, {2}, DType::f64), saved);
      m.model.backward(pass, batch.batch(), options, saved, [](int) {});
      memory[static_cast<int>(recompute)] = arena.high_water();
    }
    EXPECT_EQ(gradients[0], gradients[1]);
    EXPECT_LT(memory[1], memory[0]);
  }
}

TEST(Transformer, BackwardFinishesTheFlatGradientFromItsBeginning) {
  for (const SharedEmbeddings share :
       {SharedEmbeddings::none, SharedEmbeddings::decoder, SharedEmbeddings::all}) {
    ModelConfig config = tiny();
    config.share_embeddings = share;
    TestModel m(config, kVocabulary, DType::f32);
    m.parameters.initialise(m.context, 1);
    std::vector<int> order;
    m.forward_backward(batch_of(random_pairs(3, 4)), {}, {}, &order);
    std::int64_t done = 0;
    for (const int group : order) {
      const ParameterTable::Slice slice = m.model.table().group_slice(group);
      EXPECT_EQ(slice.begin, done);
      done = slice.end;
    }
    EXPECT_EQ(done, m.model.table().flat_size());
  }
}

TEST(Transformer, ThePlanForeseesWhatARealStepTakes) {
  TestModel m(tiny(), kVocabulary, DType::f32, 2);
  m.parameters.initialise(m.context, 1);
  const HostBatch batch = batch_of(random_pairs(40, 4));
  m.forward_backward(batch, {}, kDropout);

  Context plan(Device::plan, 2, 0);
  Arena arena;
  const Parameters planned(m.model.table(), plan, DType::f32, true);
  Transformer::Saved saved;
  const Pass pass{plan, planned, arena, kDropout};
  m.model.forward(pass, batch.batch(), {}, Tensor(nullptr, {2}, DType::f64), saved);
  m.model.backward(pass, batch.batch(), {}, saved, [](int) {});
  EXPECT_EQ(arena.high_water(), m.memory.high_water());
  EXPECT_EQ(plan.scratch().high_water(), m.context.scratch().high_water());
}

TEST(Transformer, EveryParameterGetsAGradientAndPaddedRowsGetNone) {
  TestModel m(tiny(NormPlace::pre), kVocabulary, DType::f32);
  m.parameters.initialise(m.context, 1);
  m.forward_backward(batch_of(random_pairs(30, 4)), {.label_smoothing = 0.1}, {});
  for (const Parameter& p : m.model.table().parameters()) {
    const Tensor all = m.parameters.flat_gradient().rows(p.offset, p.padded_size());
    double sum = 0;
    for (std::int64_t i = 0; i < all.elements(); ++i) {
      const double g = TestModel::get(all, i);
      if (i < p.shape[0] * p.columns()) {
        sum += std::abs(g);
      } else {
        EXPECT_EQ(g, 0) << p.name;
      }
    }
    EXPECT_GT(sum, 0) << p.name;
  }
}

TEST(Transformer, RefusesSizesThatDoNotFit) {
  ModelConfig config = tiny();
  config.heads = 5;
  EXPECT_THROW(Transformer(config, 10, 10), InternalError);
  config.head_width = 7;
  EXPECT_NO_THROW(Transformer(config, 10, 10));
  EXPECT_THROW(Transformer(config, 10, 11), UserError);  // all embeddings shared
  config.share_embeddings = SharedEmbeddings::decoder;
  EXPECT_NO_THROW(Transformer(config, 10, 11));
  config.width = 13;  // sinusoids come in pairs
  EXPECT_THROW(Transformer(config, 10, 11), InternalError);
}

TEST(Parameters, StartDoesNotDependOnLayout) {
  ModelConfig config = tiny();
  TestModel all(config, kVocabulary, DType::f32);
  config.norm = NormPlace::pre;
  TestModel other(config, kVocabulary, DType::f32);
  all.parameters.initialise(all.context, 3);
  other.parameters.initialise(other.context, 3);
  const auto find = [](const TestModel& m, std::string_view name) {
    for (const Parameter& p : m.model.table().parameters()) {
      if (p.name == name) return m.parameters.stored(m.parameters.flat_master(), p);
    }
    throw InternalError("no such parameter");
  };
  const char* name = "decoder.layers.1.cross_attention.v.weight";
  const Tensor a = find(all, name), b = find(other, name);
  EXPECT_EQ(0, std::memcmp(a.raw(), b.raw(), static_cast<std::size_t>(a.bytes())));
  const double bound = std::sqrt(6.0 / 24.0);
  double largest = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    largest = std::max(largest, std::abs(TestModel::get(a, i)));
  }
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.9 * bound);
}

}  // namespace
}  // namespace octavo
