#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/token_batch.h"
#include "model/transformer.h"

namespace octavo::testkit {

/// A pair of sentences as ids that end with EOS.
struct IdPair {
  std::vector<std::int32_t> source, target;
};

inline constexpr std::int32_t kBos = 1, kEos = 2;

/// A micro-batch of pairs; ordinals count from `first` (source) and `first` (target).
inline HostBatch batch_of(const std::vector<IdPair>& pairs, std::int64_t first_source = 0,
                          std::int64_t first_target = 0) {
  HostBatch batch;
  for (const IdPair& p : pairs) {
    batch.add(p.source, p.target, kBos, first_source, first_target);
    first_source += static_cast<std::int64_t>(p.source.size());
    first_target += static_cast<std::int64_t>(p.target.size());
  }
  batch.finish();
  return batch;
}

/// Element i of a parameter, by the formula of tests/golden/make_transformer.py.
inline double formula_value(const std::string& name, std::int64_t i) {
  int sum = 0;
  for (const unsigned char c : name) sum += c;
  const double v = 0.5 * std::sin(static_cast<double>(i) * 1.7 + sum % 1000 + 1.0);
  return name.ends_with("norm.weight") ? 1.0 + 0.2 * v : v;
}

/// A model with memory to run it on the CPU.
class TestModel {
 public:
  TestModel(const ModelConfig& config, std::int64_t vocabulary, DType type, int threads = 1)
      : context(Device::cpu, threads, std::int64_t{1} << 26),
        memory(std::int64_t{1} << 26),
        model(config, vocabulary, vocabulary),
        parameters(model.table(), context, type, true),
        sums_(2, 0.0) {}

  /// Fills every parameter by formula_value.
  void fill_by_formula() {
    zero(parameters.flat_master());
    for (const Parameter& p : model.table().parameters()) {
      const Tensor stored = parameters.stored(parameters.flat_master(), p);
      for (std::int64_t i = 0; i < stored.elements(); ++i) set(stored, i, formula_value(p.name, i));
    }
    parameters.refresh_weights(context);
  }

  Pass pass(StepRandom random = {}) { return {context, parameters, memory, random}; }

  struct Result {
    double loss, nll;
  };
  /// Adds to the gradients. @param order  if given, receives the groups as they are done.
  Result forward_backward(const HostBatch& batch, const Transformer::LossOptions& options,
                          StepRandom random = {}, std::vector<int>* order = nullptr) {
    const ArenaScope scope(memory);
    sums_ = {0.0, 0.0};
    const Tensor sums(sums_.data(), {2}, DType::f64);
    const Pass p = pass(random);
    model.forward(p, batch.batch(), options, sums, saved_);
    model.backward(p, batch.batch(), options, saved_, [&](int group) {
      if (order != nullptr) order->push_back(group);
    });
    return {sums_[0], sums_[1]};
  }
  /// The loss without gradients.
  Result evaluate(const HostBatch& batch, double label_smoothing) {
    sums_ = {0.0, 0.0};
    model.evaluate(pass(), batch.batch(), label_smoothing, Tensor(sums_.data(), {2}, DType::f64),
                   {});
    return {sums_[0], sums_[1]};
  }

  static double get(const Tensor& t, std::int64_t i) {
    return t.dtype() == DType::f64 ? t.data<double>()[i] : static_cast<double>(t.data<float>()[i]);
  }
  static void set(const Tensor& t, std::int64_t i, double value) {
    if (t.dtype() == DType::f64) {
      t.data<double>()[i] = value;
    } else {
      t.data<float>()[i] = static_cast<float>(value);
    }
  }

  Context context;
  Arena memory;
  Transformer model;
  Parameters parameters;

 private:
  static void zero(const Tensor& t) {
    for (std::int64_t i = 0; i < t.elements(); ++i) set(t, i, 0.0);
  }
  std::vector<double> sums_;
  Transformer::Saved saved_;
};

}  // namespace octavo::testkit
