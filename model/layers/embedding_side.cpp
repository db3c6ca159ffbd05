#include "model/layers/embedding_side.h"

#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include "core/arena.h"
#include "model/ops/embedding.h"

namespace octavo {

namespace {

/// Tables of sinusoids, made once per shape and type:
///     p[n, 2i] = sin(n / 10000^(2i / D)),  p[n, 2i + 1] = cos(n / 10000^(2i / D)).
class Sinusoids {
 public:
  explicit Sinusoids(Context& ctx) : planned_(ctx.device() == Device::plan) {}

  Tensor table(std::int64_t positions, std::int64_t width, DType type) {
    if (planned_) return {nullptr, {positions, width}, type};
    std::unique_ptr<Arena>& memory = tables_[{positions, width, type}];
    const bool made = memory != nullptr;
    if (!made) memory = std::make_unique<Arena>(Tensor(nullptr, {positions, width}, type).bytes());
    memory->release_to(0);
    const Tensor table = memory->allocate({positions, width}, type);
    if (!made && type == DType::f64) fill(positions, width, table.data<double>());
    if (!made && type == DType::f32) fill(positions, width, table.data<float>());
    return table;
  }

 private:
  template <typename T>
  static void fill(std::int64_t positions, std::int64_t width, T* out) {
    for (std::int64_t n = 0; n < positions; ++n) {
      for (std::int64_t d = 0; d < width; d += 2) {
        const double angle =
            static_cast<double>(n) *
            std::pow(10000.0, -static_cast<double>(d) / static_cast<double>(width));
        out[n * width + d] = static_cast<T>(std::sin(angle));
        out[n * width + d + 1] = static_cast<T>(std::cos(angle));
      }
    }
  }

  bool planned_;
  std::map<std::tuple<std::int64_t, std::int64_t, DType>, std::unique_ptr<Arena>> tables_;
};

}  // namespace

EmbeddingSide::EmbeddingSide(const ModelConfig& config, const std::string& name,
                             const std::string& positions, std::int64_t vocabulary,
                             const ParameterSpan* shared, int site, ParameterTable& table)
    : width_(config.width),
      max_positions_(config.max_positions),
      learned_(config.positions == PositionKind::learned),
      dropout_(config.dropout),
      site_(site),
      group_(table.begin_group()) {
  weight_ = shared != nullptr
                ? *shared
                : table.add_matrix(name + ".weight", vocabulary, width_, Init::embedding,
                                   round_up(vocabulary, kVocabularyMultiple));
  if (learned_) {
    positions_ = table.add_matrix(positions + ".weight", max_positions_, width_, Init::embedding);
  }
}

Tensor EmbeddingSide::position_table(const Pass& pass) const {
  if (learned_) return pass.parameters.master(positions_);
  return pass.ctx.state<Sinusoids>().table(max_positions_, width_,
                                           statistics_type(pass.parameters.compute_type()));
}

Dropout EmbeddingSide::dropout(const Pass& pass, const PackedTokens& tokens) const {
  return pass.random.at(site_, dropout_, tokens.ordinals);
}

void EmbeddingSide::forward(const Pass& pass, const PackedTokens& tokens, Tensor x_ND) const {
  embedding_forward(pass.ctx,
                    {.tokens = tokens,
                     .table = pass.parameters.weight(weight_),
                     .positions = position_table(pass),
                     .scale = std::sqrt(static_cast<double>(width_)),
                     .dropout = dropout(pass, tokens)},
                    x_ND);
}

void EmbeddingSide::backward(const Pass& pass, const PackedTokens& tokens,
                             const Tensor& dx_ND) const {
  const Parameters& p = pass.parameters;
  embedding_backward(pass.ctx,
                     {.tokens = tokens,
                      .table = p.weight(weight_),
                      .positions = position_table(pass),
                      .scale = std::sqrt(static_cast<double>(width_)),
                      .dropout = dropout(pass, tokens)},
                     dx_ND, p.gradient(weight_), learned_ ? p.gradient(positions_) : Tensor());
}

}  // namespace octavo
