#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/model/model_fixture.h"

namespace octavo {
namespace {

using nlohmann::json;
using testkit::TestModel;

template <typename E>
E enum_of(const std::string& name) {
  for (const auto& [value, text] : EnumNames<E>::values) {
    if (text == name) return value;
  }
  throw InternalError("golden file names an unknown value");
}

ModelConfig config_of(const json& c) {
  ModelConfig config;
  config.width = c.at("width");
  config.hidden = c.at("hidden");
  config.heads = c.at("heads");
  config.head_width = c.at("head_width").get<int>();
  config.encoder_layers = c.at("encoder_layers");
  config.decoder_layers = c.at("decoder_layers");
  config.norm = enum_of<NormPlace>(c.at("norm"));
  config.activation = enum_of<Activation>(c.at("activation"));
  config.positions = enum_of<PositionKind>(c.at("positions"));
  config.max_positions = c.at("max_positions");
  config.share_embeddings = enum_of<SharedEmbeddings>(c.at("share_embeddings"));
  config.dropout = 0;
  return config;
}

json golden() {
  std::ifstream file(std::string(OCTAVO_SOURCE_DIR) + "/tests/golden/transformer.json");
  return json::parse(file);
}

class TransformerGolden
    : public ::testing::TestWithParam<std::tuple<std::string, DType, Recompute>> {};

/// How far a result in this type may be from PyTorch's float64.
struct Tolerance {
  double loss;      ///< relative
  double gradient;  ///< of a projection, relative to the norm of the whole gradient
  double tiny;      ///< and this much more: some gradients of a saturated softmax are 1e-7
  double zero;      ///< of a projection of a gradient that is exactly zero: the keys' bias
};

Tolerance tolerance_of(DType type) {
  if (type == DType::f64) return {1e-12, 1e-10, 1e-14, 1e-12};
  if (type == DType::f32) return {1e-6, 2e-4, 1e-7, 1e-6};
  return {3e-3, 0.25, 1e-6, 4e-3};
}

// Every parameter's gradient is compared through two projections with fixed weights.
TEST_P(TransformerGolden, AgreesWithPyTorch) {
  const auto& [name, type, recompute] = GetParam();
  const json all = golden(), expected = all.at("cases").at(name);
  TestModel m(config_of(expected.at("config")), all.at("vocabulary"), type);
  m.fill_by_formula();
  std::vector<testkit::IdPair> pairs;
  std::int64_t tokens = 0;
  for (const json& pair : all.at("pairs")) {
    pairs.push_back({pair.at(0), pair.at(1)});
    tokens += static_cast<std::int64_t>(pairs.back().target.size());
  }
  const double smoothing = all.at("label_smoothing");
  const HostBatch batch = testkit::batch_of(pairs);
  const TestModel::Result result =
      m.forward_backward(batch, {.label_smoothing = smoothing,
                                 .gradient_scale = 1.0 / static_cast<double>(tokens),
                                 .recompute = recompute});
  const Tolerance tolerance = tolerance_of(type);
  const double loss = expected.at("loss"), nll = expected.at("nll");
  EXPECT_NEAR(result.loss, loss, tolerance.loss * loss);
  EXPECT_NEAR(result.nll, nll, tolerance.loss * nll);
  const TestModel::Result evaluated = m.evaluate(batch, smoothing);
  EXPECT_NEAR(evaluated.loss, loss, tolerance.loss * loss);

  const json& gradients = expected.at("gradients");
  EXPECT_EQ(gradients.size(), m.model.table().parameters().size());
  for (const Parameter& p : m.model.table().parameters()) {
    ASSERT_TRUE(gradients.contains(p.name)) << p.name;
    const json& g = gradients.at(p.name);
    EXPECT_EQ(g.at(0).get<std::vector<std::int64_t>>(), p.shape) << p.name;
    const Tensor stored = m.parameters.stored(m.parameters.flat_gradient(), p);
    double by_sine = 0, by_cosine = 0, squares = 0;
    for (std::int64_t i = 0; i < stored.elements(); ++i) {
      const double value = TestModel::get(stored, i);
      by_sine += value * std::sin(0.7 * static_cast<double>(i) + 0.3);
      by_cosine += value * std::cos(1.3 * static_cast<double>(i));
      squares += value * value;
    }
    const double allowed = p.name.ends_with(".k.bias")
                               ? tolerance.zero
                               : tolerance.gradient * std::sqrt(squares) + tolerance.tiny;
    EXPECT_NEAR(by_sine, g.at(1), allowed) << p.name;
    EXPECT_NEAR(by_cosine, g.at(2), allowed) << p.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TransformerGolden,
                         ::testing::Combine(::testing::Values("post_relu_all", "pre_gelu_decoder",
                                                              "post_gelu_none_learned",
                                                              "pre_relu_all_learned_wide_heads",
                                                              "post_deep_encoder"),
                                            ::testing::Values(DType::f64, DType::f32, DType::bf16),
                                            ::testing::Values(Recompute::none, Recompute::layer)),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" +
                                  std::string(name_of(std::get<1>(test.param))) +
                                  (std::get<2>(test.param) == Recompute::layer ? "_recompute" : "");
                         });

}  // namespace
}  // namespace octavo
