// Two updates of a tiny model, to be counted by callgrind: tests/launch/instruction_budget_test.py.
//
//     valgrind --tool=callgrind --instr-atstart=no --collect-atstart=no counted_step all|own
//
// Counts the second update: all of it, or our own kernels alone, which is all but matrix products.
#include <valgrind/callgrind.h>

#include <cstdio>
#include <string>
#include <vector>

#include "core/philox.h"
#include "tests/model/model_fixture.h"
#include "trainer/optimizer.h"

namespace octavo {
namespace {

constexpr std::int64_t kVocabulary = 1000;
constexpr int kPairs = 12;

/// Counts while an op is at work that is no product.
class OwnKernels : public Recorder {
 public:
  void begin(const OpCost& cost) override {
    if (counting()) CALLGRIND_TOGGLE_COLLECT;
    open_.push_back(!cost.name.starts_with("linear_"));
    if (counting()) CALLGRIND_TOGGLE_COLLECT;
  }
  void end() override {
    if (counting()) CALLGRIND_TOGGLE_COLLECT;
    open_.pop_back();
    if (counting()) CALLGRIND_TOGGLE_COLLECT;
  }

 private:
  bool counting() const { return !open_.empty() && open_.back(); }
  std::vector<bool> open_;
};

ModelConfig tiny() {
  ModelConfig config;
  config.width = 64;
  config.hidden = 256;
  config.heads = 4;
  config.encoder_layers = config.decoder_layers = 2;
  config.attention_dropout = config.activation_dropout = 0.1;
  return config;
}

/// Pairs of 4 to 37 tokens a side.
HostBatch draw_batch() {
  RandomStream random(7);
  const auto sentence = [&] {
    std::vector<std::int32_t> ids;
    for (std::uint64_t n = 3 + random.below(34); n > 0; --n) {
      ids.push_back(static_cast<std::int32_t>(3 + random.below(kVocabulary - 3)));
    }
    ids.push_back(testkit::kEos);
    return ids;
  };
  std::vector<testkit::IdPair> pairs;
  pairs.reserve(kPairs);
  for (int b = 0; b < kPairs; ++b) pairs.push_back({sentence(), sentence()});
  return testkit::batch_of(pairs);
}

void count(bool all) {
  testkit::TestModel model(tiny(), kVocabulary, DType::f32);
  model.parameters.initialise(model.context, 1);
  Optimizer optimizer(OptimizerConfig(), {}, model.context, model.parameters);
  const HostBatch batch = draw_batch();
  OwnKernels own;
  for (std::uint64_t update = 0; update < 2; ++update) {
    // The first makes the library's primitives and is not counted.
    if (update == 1) CALLGRIND_START_INSTRUMENTATION;
    if (update == 1 && !all) model.context.set_recorder(&own);
    if (update == 1 && all) CALLGRIND_TOGGLE_COLLECT;
    model.parameters.zero_gradients(model.context);
    model.forward_backward(batch, {.label_smoothing = 0.1, .gradient_scale = 1e-2},
                           {.training = true, .seed = 1, .update = update});
    optimizer.step(model.context, 1e-3);
    if (update == 1 && all) CALLGRIND_TOGGLE_COLLECT;
  }
  model.context.set_recorder(nullptr);
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  const std::string what = argc == 2 ? argv[1] : "";
  if (what != "all" && what != "own") {
    std::fputs("usage: counted_step all|own\n", stderr);
    return 2;
  }
  octavo::count(what == "all");
  return 0;
}
