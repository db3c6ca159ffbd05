// Search and scoring with a real, random Transformer: the cached decoder against whole sentences,
// batches against single sentences, the plan against what is taken.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/philox.h"
#include "translate/attention.h"
#include "translate/batch_translator.h"
#include "translate/scorer.h"
#include "translate/workers.h"

namespace octavo {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr std::int32_t kPad = 0, kBos = 1, kEos = 2, kUnk = 3;

/// A small random model in one element type, with memory as planned and no more.
class RandomModel {
 public:
  explicit RandomModel(DType type, std::int64_t vocabulary = 11, NormPlace norm = NormPlace::pre,
                       int threads = 1)
      : type_(type),
        threads_(threads),
        model_({.width = 16,
                .hidden = 32,
                .heads = 2,
                .head_width = {},
                .encoder_layers = 2,
                .decoder_layers = 2,
                .norm = norm,
                .max_positions = 40,
                .share_embeddings = SharedEmbeddings::all},
               vocabulary, vocabulary),
        setup_(Device::cpu, threads_, std::int64_t{1} << 20),
        parameters_(model_.table(), setup_, type, false) {
    parameters_.initialise(setup_, 5);
    // Initial weights hardly tell pieces apart.
    const Tensor flat = parameters_.flat_master();
    for (std::int64_t i = 0; i < flat.elements(); ++i) {
      if (flat.dtype() == DType::f64) {
        flat.data<double>()[i] *= 2;
      } else {
        flat.data<float>()[i] *= 2;
      }
    }
    parameters_.refresh_weights(setup_);
  }

  std::vector<std::vector<Translation>> translate(const SearchRules& rules,
                                                  const std::vector<Ids>& sources,
                                                  std::int64_t batch_tokens = 200) const {
    const BatchTranslator translator(model_, {.rules = rules,
                                              .frame = {.bos = kBos, .eos = kEos},
                                              .never_generated = {kPad, kBos, kUnk},
                                              .batch_tokens = batch_tokens});
    return within<std::vector<std::vector<Translation>>>(
        translator.plan(parameters_, threads_), [&](const Pass& pass) {
          return translator.translate({&pass, 1}, sources);
        });
  }

  /// The same by several workers, with packed weights.
  std::vector<std::vector<Translation>> translate_packed(const SearchRules& rules,
                                                         const std::vector<Ids>& sources,
                                                         int workers) const {
    Context ctx(Device::cpu, 1, std::int64_t{1} << 20);
    Parameters parameters(model_.table(), ctx, type_, false);
    std::memcpy(parameters.flat_master().raw(), parameters_.flat_master().raw(),
                static_cast<std::size_t>(parameters_.flat_master().bytes()));
    parameters.refresh_weights(ctx);
    parameters.pack(ctx, model_.product_weights(), WeightFormat::compute);
    const BatchTranslator translator(model_, {.rules = rules,
                                              .frame = {.bos = kBos, .eos = kEos},
                                              .never_generated = {kPad, kBos, kUnk},
                                              .batch_tokens = 200});
    const Workers all(parameters, translator.plan(parameters, 1), workers);
    return translator.translate(all.passes(), sources);
  }

  std::vector<double> score(const std::vector<IdPair>& pairs,
                            std::int64_t batch_tokens = 200) const {
    const PairScorer scorer(model_, kBos, batch_tokens);
    return within<std::vector<double>>(scorer.plan(type_, threads_),
                                       [&](const Pass& pass) { return scorer.score(pass, pairs); });
  }

  PairAttention attention(const IdPair& pair) const {
    const AttentionReader reader(model_, kBos);
    return within<PairAttention>(reader.plan(type_, threads_),
                                 [&](const Pass& pass) { return reader.read(pass, pair); });
  }

  /// Random sentences of 1 to 39 tokens and EOS.
  std::vector<Ids> sources(std::size_t n) const {
    RandomStream random(9);
    std::vector<Ids> all(n);
    for (Ids& ids : all) {
      for (std::uint64_t length = random.below(40); length > 0; --length) {
        const auto pieces = static_cast<std::uint64_t>(model_.source_vocabulary() - 4);
        ids.push_back(4 + static_cast<std::int32_t>(random.below(pieces)));
      }
      ids.push_back(kEos);
    }
    return all;
  }

  double tolerance() const {
    return type_ == DType::f64 ? 1e-10 : type_ == DType::f32 ? 2e-4 : 0.5;
  }

 private:
  template <typename R>
  R within(const WorkMemory& memory, const std::function<R(const Pass&)>& work) const {
    Context ctx(Device::cpu, threads_, memory.scratch);
    Arena arena(memory.activations);
    R result = work({.ctx = ctx, .parameters = parameters_, .memory = arena, .random = {}});
    EXPECT_EQ(arena.used(), 0);
    EXPECT_EQ(ctx.scratch().used(), 0);
    return result;
  }

  DType type_;
  int threads_;
  Transformer model_;
  Context setup_;
  Parameters parameters_;
};

SearchRules rules_of(SearchPreset preset, int beam, int nbest) {
  return search_rules({.preset = preset, .beam = beam}, nbest);
}

class ModelSearch : public ::testing::TestWithParam<DType> {};

// Every translation's log-probability was added up step by step over reordered caches: the decoder
// over the whole sentence must say the same.
TEST_P(ModelSearch, CachedDecodingAgreesWithWholeSentences) {
  for (const NormPlace norm : {NormPlace::pre, NormPlace::post}) {
    const RandomModel model(GetParam(), 11, norm);
    const std::vector<Ids> sources = model.sources(12);
    std::vector<IdPair> pairs;
    std::vector<double> expected;
    for (const SearchPreset preset :
         {SearchPreset::transformer, SearchPreset::fairseq, SearchPreset::marian}) {
      const auto found = model.translate(rules_of(preset, 3, 3), sources);
      for (std::size_t b = 0; b < found.size(); ++b) {
        for (const Translation& t : found[b]) {
          if (!t.ended) continue;
          pairs.push_back({sources[b], t.ids});
          pairs.back().target.push_back(kEos);
          expected.push_back(t.log_probability);
        }
      }
    }
    EXPECT_GT(pairs.size(), 30u);
    const std::vector<double> scores = model.score(pairs);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      EXPECT_NEAR(expected[i], scores[i], model.tolerance()) << "pair " << i;
    }
  }
}

TEST_P(ModelSearch, NeverGeneratesSpecialPieces) {
  const RandomModel model(GetParam());
  for (const auto& translations :
       model.translate(rules_of(SearchPreset::fairseq, 4, 4), model.sources(10))) {
    for (const Translation& t : translations) {
      EXPECT_FALSE(t.ids.empty());
      for (const std::int32_t id : t.ids) EXPECT_GE(id, 4);
    }
  }
}

TEST_P(ModelSearch, BatchesDoNotMatterButForNearTies) {
  const RandomModel model(GetParam());
  const std::vector<Ids> sources = model.sources(40);
  const SearchRules rules = rules_of(SearchPreset::transformer, 4, 1);
  const auto together = model.translate(rules, sources, 1000);
  const auto apart = model.translate(rules, sources, 1);
  int different = 0;
  for (std::size_t b = 0; b < sources.size(); ++b) {
    different += together[b][0].ids != apart[b][0].ids;
    if (GetParam() != DType::bf16) {
      EXPECT_NEAR(together[b][0].score, apart[b][0].score, model.tolerance());
    }
  }
  EXPECT_LE(different, GetParam() == DType::f64 ? 0 : GetParam() == DType::f32 ? 1 : 30);
}

TEST_P(ModelSearch, PackedWeightsAndWorkersDoNotMatterButForNearTies) {
  const RandomModel model(GetParam());
  const std::vector<Ids> sources = model.sources(40);
  const SearchRules rules = rules_of(SearchPreset::transformer, 4, 1);
  const auto expected = model.translate(rules, sources);
  for (const int workers : {1, 2, 5}) {
    const auto found = model.translate_packed(rules, sources, workers);
    ASSERT_EQ(found.size(), expected.size());
    int different = 0;
    for (std::size_t b = 0; b < sources.size(); ++b) {
      different += found[b][0].ids != expected[b][0].ids;
      if (GetParam() != DType::bf16) {
        EXPECT_NEAR(found[b][0].score, expected[b][0].score, model.tolerance());
      }
    }
    EXPECT_LE(different, GetParam() == DType::f64 ? 0 : GetParam() == DType::f32 ? 1 : 30);
  }
  EXPECT_TRUE(model.translate_packed(rules, {}, 2).empty());
}

TEST_P(ModelSearch, BatchesDoNotMatterToScores) {
  const RandomModel model(GetParam());
  std::vector<IdPair> pairs;
  for (const Ids& s : model.sources(40)) pairs.push_back({s, s});
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2)
    std::swap(pairs[i].source, pairs[i + 1].source);
  const std::vector<double> apart = model.score(pairs, 1), together = model.score(pairs, 1000);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    EXPECT_NEAR(apart[i], together[i], model.tolerance());
    EXPECT_LT(apart[i], 0);
  }
}

TEST_P(ModelSearch, NothingGivesNothing) {
  const RandomModel model(GetParam());
  EXPECT_TRUE(model.translate(rules_of(SearchPreset::marian, 2, 1), {}).empty());
  EXPECT_TRUE(model.score({}).empty());
}

INSTANTIATE_TEST_SUITE_P(Types, ModelSearch, ::testing::Values(DType::f64, DType::f32, DType::bf16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

TEST(ModelSearchExhaustive, AWideBeamFindsTheBestOfAll) {
  constexpr std::int64_t kVocabulary = 7, kLimit = 4;
  const RandomModel model(DType::f64, kVocabulary);
  const Ids source{4, 6, 5, kEos};
  std::vector<IdPair> pairs;
  const std::function<void(const Ids&)> grow = [&](const Ids& prefix) {
    pairs.push_back({source, prefix});
    pairs.back().target.push_back(kEos);
    if (static_cast<std::int64_t>(prefix.size()) + 1 == kLimit) return;
    for (std::int32_t id = 4; id < kVocabulary; ++id) {
      Ids longer = prefix;
      longer.push_back(id);
      grow(longer);
    }
  };
  grow({});
  const SearchRules rules = search_rules({.beam = 100, .max_length = kLimit});
  const std::vector<double> scores = model.score(pairs);
  std::size_t best = 0;
  const auto ranked = [&](std::size_t i) {
    return rules.score(scores[i], static_cast<std::int64_t>(pairs[i].target.size()));
  };
  for (std::size_t i = 1; i < pairs.size(); ++i) {
    if (ranked(i) > ranked(best)) best = i;
  }
  const Translation found = model.translate(rules, {source})[0][0];
  Ids ids = found.ids;
  ids.push_back(kEos);
  EXPECT_EQ(ids, pairs[best].target);
  EXPECT_NEAR(found.score, ranked(best), 1e-10);
}

TEST(ModelSearchLimits, NoOutputIsLongerThanTheModelTakes) {
  const RandomModel model(DType::f32, 11, NormPlace::pre, 2);
  for (const SearchPreset preset :
       {SearchPreset::transformer, SearchPreset::fairseq, SearchPreset::marian}) {
    for (const auto& translations : model.translate(rules_of(preset, 2, 1), model.sources(20))) {
      EXPECT_LE(translations[0].ids.size(), translations[0].ended ? 39u : 40u);
    }
  }
  for (const auto& t : model.translate(search_rules({.max_length = 1}), model.sources(5))) {
    EXPECT_LE(t[0].ids.size(), 1u);
  }
}

TEST(Attention, EveryRowIsADistributionOverTheSource) {
  for (const DType type : {DType::f64, DType::f32}) {
    const RandomModel model(type);
    const PairAttention found = model.attention({{4, 5, 6, 7, kEos}, {8, 9, kEos}});
    EXPECT_EQ(found.layers, 2);
    EXPECT_EQ(found.heads, 2);
    EXPECT_EQ(found.target_tokens, 3);
    EXPECT_EQ(found.source_tokens, 5);
    ASSERT_EQ(found.weights.size(), 2U * 2 * 3 * 5);
    for (std::size_t row = 0; row < 12; ++row) {
      const float* w = found.weights.data() + row * 5;
      EXPECT_NEAR(w[0] + w[1] + w[2] + w[3] + w[4], 1, 1e-6);
      EXPECT_GT(*std::max_element(w, w + 5) - *std::min_element(w, w + 5), 1e-4);  // no mean
    }
  }
}

TEST(Attention, DoesNotKnowWhatComesNext) {
  const RandomModel model(DType::f64);
  const std::vector<float> one = model.attention({{4, 5, 6, kEos}, {8, 9, 10, kEos}}).weights;
  const std::vector<float> other = model.attention({{4, 5, 6, kEos}, {8, 9, 4, kEos}}).weights;
  // The row of target token t sees BOS and tokens before t: the third token moves only the fourth.
  for (std::size_t block = 0; block < 4; ++block) {
    for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(one[block * 16 + i], other[block * 16 + i]);
    EXPECT_NE(one[block * 16 + 12], other[block * 16 + 12]);
  }
}

TEST(Attention, JsonIsNestedByLayerHeadTargetSource) {
  const Vocabulary vocabulary({"<pad>", "<s>", "</s>", "<unk>", "a\"", "b"},
                              {.pad = kPad, .bos = kBos, .eos = kEos, .unk = kUnk}, {});
  const PairAttention attention{.layers = 1,
                                .heads = 2,
                                .target_tokens = 1,
                                .source_tokens = 2,
                                .weights = {0.25F, 0.75F, 1.0F, 0.00004F}};
  const auto json =
      nlohmann::json::parse(attention_json(attention, {{4, kEos}, {kEos}}, vocabulary, vocabulary));
  EXPECT_EQ(json.at("source"), nlohmann::json::parse(R"(["a\"", "</s>"])"));
  EXPECT_EQ(json.at("target"), nlohmann::json::parse(R"(["</s>"])"));
  EXPECT_EQ(json.at("weights"), nlohmann::json::parse("[[[[0.25, 0.75]], [[1.0, 0.0]]]]"));
}

}  // namespace
}  // namespace octavo
