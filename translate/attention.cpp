#include "translate/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "model/ops/elementwise.h"

namespace octavo {
namespace {

/// Appends the weights of one layer, heads before tokens.
template <typename T>
void append(const Tensor& weights, PairAttention& out) {
  const T* w = weights.data<T>();
  const std::int64_t H = out.heads, S = out.source_tokens;
  for (std::int64_t h = 0; h < H; ++h) {
    for (std::int64_t t = 0; t < out.target_tokens; ++t) {
      const T* row = w + (t * H + h) * S;
      for (std::int64_t s = 0; s < S; ++s) out.weights.push_back(static_cast<float>(row[s]));
    }
  }
}

std::string pieces_json(const std::vector<std::int32_t>& ids, const Vocabulary& vocabulary) {
  nlohmann::json pieces = nlohmann::json::array();
  for (const std::int32_t id : ids) pieces.push_back(vocabulary.piece(id));
  return pieces.dump();
}

}  // namespace

void AttentionReader::run(const Pass& pass, const TokenBatch& batch,
                          const AttentionListener& listener) const {
  const ArenaScope scope(pass.memory);
  Pass listening = pass;
  listening.attention = &listener;
  const Tensor sums = pass.memory.allocate({2}, DType::f64);
  zero(pass.ctx, sums);
  model_.evaluate(listening, batch, 0, sums, {});
}

WorkMemory AttentionReader::plan(DType compute, int threads) const {
  Context ctx(Device::plan, threads, 0);
  const Parameters parameters(model_.table(), ctx, compute, false);
  Arena memory;
  const Pass pass{.ctx = ctx, .parameters = parameters, .memory = memory, .random = {}};
  // Longer sentences take more activations, but the product library may want more scratch for
  // shorter ones.
  for (std::int64_t length = 1; length <= model_.config().max_positions; ++length) {
    run(pass, planned_batch(1, length, length), [](const std::string&, const Tensor&) {});
  }
  return {.activations = memory.high_water(), .scratch = ctx.scratch().high_water()};
}

PairAttention AttentionReader::read(const Pass& pass, const IdPair& pair) const {
  HostBatch batch;
  batch.add(pair.source, pair.target, bos_, 0, 0);
  const TokenBatch& packed = batch.finish();
  PairAttention found{.heads = model_.config().heads,
                      .target_tokens = packed.target.tokens,
                      .source_tokens = packed.source.tokens};
  run(pass, packed, [&](const std::string& name, const Tensor& weights) {
    if (!name.ends_with("cross_attention")) return;
    ++found.layers;
    weights.dtype() == DType::f64 ? append<double>(weights, found) : append<float>(weights, found);
  });
  return found;
}

std::string attention_json(const PairAttention& attention, const IdPair& pair,
                           const Vocabulary& source, const Vocabulary& target) {
  std::string line =
      fmt::format(R"({{"source":{},"target":{},"weights":)", pieces_json(pair.source, source),
                  pieces_json(pair.target, target));
  const std::int64_t sizes[] = {attention.layers, attention.heads, attention.target_tokens,
                                attention.source_tokens};
  const float* next = attention.weights.data();
  const std::function<void(int)> append_level = [&](int level) {
    if (level == 4) {
      fmt::format_to(std::back_inserter(line), "{}", std::round(*next++ * 1e4) / 1e4);
      return;
    }
    line += '[';
    for (std::int64_t i = 0; i < sizes[level]; ++i) {
      if (i > 0) line += ',';
      append_level(level + 1);
    }
    line += ']';
  };
  append_level(0);
  return line + "}";
}

}  // namespace octavo
