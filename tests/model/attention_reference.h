#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "model/ops/attention.h"
#include "tests/testkit/tensors.h"

namespace octavo::testkit {

/// Shape and kind of one attention problem.
struct AttentionCase {
  std::string name;
  std::vector<std::int64_t> queries = {};  ///< lengths by sentence
  std::vector<std::int64_t> keys = {};     ///< the same; empty: those of the queries
  std::int64_t heads = 1, key_width = 4, value_width = 4;
  Mask mask = Mask::none;
  double dropout = 0;
};

/// Lengths as PackedTokens; ordinals start at `first_ordinal`.
struct Packed {
  Packed(const std::vector<std::int64_t>& lengths, std::int64_t first_ordinal) {
    for (const std::int64_t n : lengths) {
      builder.add(std::vector<std::int32_t>(static_cast<std::size_t>(n), 3), first_ordinal);
      first_ordinal += n;
    }
    tokens = builder.finish();
  }
  PackedTokensBuilder builder;
  PackedTokens tokens;
};

/// Random inputs of a case, as views with rows apart, and room for every result. Tail rows of the
/// inputs are NaN: nothing may read them.
struct AttentionProblem {
  AttentionProblem(const AttentionCase& c, DType type, std::uint64_t seed)
      : shape(c),
        queries(c.queries, (std::int64_t{1} << 33) + 5),  // both words of the ordinal count
        keys(c.keys.empty() ? c.queries : c.keys, 0),
        key_columns(c.heads * c.key_width),
        value_columns(c.heads * c.value_width),
        q({queries.tokens.rows, key_columns + 3}, type),
        kv({keys.tokens.rows, key_columns + value_columns + 1}, type),
        dout({queries.tokens.rows, value_columns}, type),
        out({queries.tokens.rows, value_columns}, type),
        lse({queries.tokens.rows, c.heads}, statistics_type(type)),
        dq({queries.tokens.rows, key_columns + 3}, type),
        dkv({keys.tokens.rows, key_columns + value_columns + 1}, type) {
    RandomStream stream(seed);
    const auto fill = [&](TestTensor& t, std::int64_t rows) {
      const std::int64_t width = t.view().dim(1);
      for (std::int64_t i = 0; i < rows * width; ++i) t.set(i, stream.normal());
    };
    fill(q, queries.tokens.tokens);
    fill(kv, keys.tokens.tokens);
    fill(dout, queries.tokens.tokens);
  }

  AttentionArgs args() const {
    return {.spec = {.heads = shape.heads,
                     .key_width = shape.key_width,
                     .value_width = shape.value_width,
                     .mask = shape.mask,
                     .scale = 1 / std::sqrt(static_cast<double>(shape.key_width))},
            .q = q.view().columns(2, key_columns),
            .k = kv.view().columns(1, key_columns),
            .v = kv.view().columns(1 + key_columns, value_columns),
            .queries = queries.tokens,
            .keys = keys.tokens,
            .dropout = {.probability = shape.dropout,
                        .key = 0x1234567890abcdefu,
                        .ordinals = queries.tokens.ordinals}};
  }
  AttentionGradients gradients() const {
    return {.dq = dq.view().columns(2, key_columns),
            .dk = dkv.view().columns(1, key_columns),
            .dv = dkv.view().columns(1 + key_columns, value_columns)};
  }
  void forward(Context& ctx) { attention_forward(ctx, args(), out, lse); }
  void backward(Context& ctx) { attention_backward(ctx, args(), out, lse, dout, gradients()); }

  AttentionCase shape;
  Packed queries, keys;
  std::int64_t key_columns, value_columns;
  TestTensor q, kv, dout, out, lse, dq, dkv;
};

/// Results of a problem by the formulas, in float64 from the inputs as stored; row-major.
struct AttentionReference {
  std::vector<double> out, lse, weights, dq, dk, dv;
  explicit AttentionReference(const AttentionProblem& problem);
};

inline AttentionReference::AttentionReference(const AttentionProblem& problem) {
  const AttentionArgs in = problem.args();
  const AttentionSpec& spec = in.spec;
  const std::int64_t H = spec.heads, K = spec.key_width, V = spec.value_width;
  const std::vector<double> q = values_of(in.q), k = values_of(in.k), v = values_of(in.v);
  const std::vector<double> dy = problem.dout.values();
  const std::int64_t longest = in.keys.longest;
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  out.assign(size(in.queries.rows * H * V), 0);
  lse.assign(size(in.queries.rows * H), 0);
  weights.assign(size(in.queries.tokens * H * longest), 0);
  dq.assign(q.size(), 0);
  dk.assign(k.size(), 0);
  dv.assign(v.size(), 0);
  const auto* from_query = in.queries.offsets.data<std::int32_t>();
  const auto* from_key = in.keys.offsets.data<std::int32_t>();
  const auto* ordinals = in.queries.ordinals.data<std::int64_t>();
  for (std::int64_t b = 0; b < in.queries.sentences; ++b) {
    for (std::int64_t h = 0; h < H; ++h) {
      for (std::int64_t i = from_query[b]; i < from_query[b + 1]; ++i) {
        const std::int64_t position = i - from_query[b], first = from_key[b];
        const std::int64_t keys =
            spec.mask == Mask::causal ? position + 1 : from_key[b + 1] - from_key[b];
        if (keys == 0) {
          lse[size(i * H + h)] = -INFINITY;
          continue;
        }
        std::vector<double> p(size(keys)), mask(size(keys), 1), dp(size(keys), 0);
        double largest = -INFINITY, sum = 0, delta = 0;
        for (std::int64_t j = 0; j < keys; ++j) {
          double s = 0;
          for (std::int64_t t = 0; t < K; ++t) {
            s += q[size((i * H + h) * K + t)] * k[size(((first + j) * H + h) * K + t)];
          }
          p[size(j)] = s * spec.scale;
          largest = std::max(largest, p[size(j)]);
        }
        for (double& s : p) sum += std::exp(s - largest);
        lse[size(i * H + h)] = largest + std::log(sum);
        for (std::int64_t j = 0; j < keys; ++j) {
          const auto ordinal = static_cast<std::uint64_t>(ordinals[i]);
          const auto words = philox(
              in.dropout.key,
              {static_cast<std::uint32_t>(ordinal), static_cast<std::uint32_t>(ordinal >> 32),
               static_cast<std::uint32_t>(j / 8), static_cast<std::uint32_t>(1 + h)});
          const std::uint32_t number = words[size(j % 8 / 2)] >> (j % 2 == 0 ? 0 : 16) & 0xffff;
          if (in.dropout.on()) {
            mask[size(j)] = number < in.dropout.threshold() ? 0 : in.dropout.scale();
          }
          p[size(j)] = std::exp(p[size(j)] - lse[size(i * H + h)]);
          weights[size((i * H + h) * longest + j)] = p[size(j)];
          for (std::int64_t t = 0; t < V; ++t) {
            const std::size_t value = size(((first + j) * H + h) * V + t);
            const std::size_t result = size((i * H + h) * V + t);
            out[result] += mask[size(j)] * p[size(j)] * v[value];
            dv[value] += mask[size(j)] * p[size(j)] * dy[result];
            dp[size(j)] += mask[size(j)] * v[value] * dy[result];
          }
          delta += p[size(j)] * dp[size(j)];
        }
        for (std::int64_t j = 0; j < keys; ++j) {
          const double ds = spec.scale * p[size(j)] * (dp[size(j)] - delta);
          for (std::int64_t t = 0; t < K; ++t) {
            const std::size_t x = size((i * H + h) * K + t);
            const std::size_t y = size(((first + j) * H + h) * K + t);
            dq[x] += ds * k[y];
            dk[y] += ds * q[x];
          }
        }
      }
    }
  }
}

}  // namespace octavo::testkit
