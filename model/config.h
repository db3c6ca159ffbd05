#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "core/settings.h"
#include "model/ops/activation.h"

namespace octavo {

/// Where a sublayer is normalised. post: norm(x + f(x)), as in the Transformer paper;
/// pre: x + f(norm(x)) with one more norm at the end of each stack.
enum class NormPlace : unsigned char { post, pre };

/// sinusoidal: fixed, as in the paper; learned: one trained vector per position.
enum class PositionKind : unsigned char { sinusoidal, learned };

/// Which of the three embeddings (source, target, output projection) are one matrix.
enum class SharedEmbeddings : unsigned char { none, decoder, all };

template <>
struct EnumNames<NormPlace> {
  static constexpr std::array<std::pair<NormPlace, std::string_view>, 2> values{
      {{NormPlace::post, "post"}, {NormPlace::pre, "pre"}}};
};
template <>
struct EnumNames<PositionKind> {
  static constexpr std::array<std::pair<PositionKind, std::string_view>, 2> values{
      {{PositionKind::sinusoidal, "sinusoidal"}, {PositionKind::learned, "learned"}}};
};
template <>
struct EnumNames<SharedEmbeddings> {
  static constexpr std::array<std::pair<SharedEmbeddings, std::string_view>, 3> values{
      {{SharedEmbeddings::none, "none"},
       {SharedEmbeddings::decoder, "decoder"},
       {SharedEmbeddings::all, "all"}}};
};
template <>
struct EnumNames<Activation> {
  static constexpr std::array<std::pair<Activation, std::string_view>, 2> values{
      {{Activation::relu, "relu"}, {Activation::gelu, "gelu"}}};
};

/// The shape of a Transformer. Source: Vaswani et al. (2017), arXiv:1706.03762.
struct ModelConfig {
  int width = 512;
  int hidden = 2048;
  int heads = 8;
  std::optional<int> head_width;
  int encoder_layers = 6;
  int decoder_layers = 6;
  NormPlace norm = NormPlace::post;
  Activation activation = Activation::relu;
  PositionKind positions = PositionKind::sinusoidal;
  int max_positions = 1024;
  SharedEmbeddings share_embeddings = SharedEmbeddings::all;
  double dropout = 0.1;
  double attention_dropout = 0.0;
  double activation_dropout = 0.0;

  /// Of one head: what was set, else width / heads.
  std::int64_t resolved_head_width() const { return head_width.value_or(width / heads); }

  template <typename Visitor>
  void describe(Visitor& v) {
    v.setting("width", width, "size of a token's vector (d_model)", v.closed(2, 65536));
    v.setting("hidden", hidden, "size of the feed-forward layer (d_ff)", v.closed(1, 1 << 20));
    v.setting("heads", heads, "attention heads", v.closed(1, 1024));
    v.setting("head_width", head_width, "size of one head; none: width / heads",
              v.closed(1, 65536));
    v.setting("encoder_layers", encoder_layers, "layers of the encoder", v.closed(1, 1000));
    v.setting("decoder_layers", decoder_layers, "layers of the decoder", v.closed(1, 1000));
    v.setting("norm", norm, "post: norm(x + f(x)), as in the paper; pre: x + f(norm(x))");
    v.setting("activation", activation, "of the feed-forward layer");
    v.setting("positions", positions, "how positions are told apart");
    v.setting("max_positions", max_positions, "longest sentence in tokens, EOS counted",
              v.closed(1, 65536));
    v.setting("share_embeddings", share_embeddings,
              "decoder: target and output are one matrix; all: the source too (joint vocabulary)");
    v.setting("dropout", dropout, "of embeddings and of every sublayer's output", v.closed(0, 0.9));
    v.setting("attention_dropout", attention_dropout, "of attention weights", v.closed(0, 0.9));
    v.setting("activation_dropout", activation_dropout, "inside the feed-forward layer",
              v.closed(0, 0.9));
    v.check(head_width || width % heads == 0, "heads",
            "it must divide model.width, or model.head_width must be set");
    v.check(positions != PositionKind::sinusoidal || width % 2 == 0, "width",
            "it must be even: sinusoidal positions come in pairs of sine and cosine");
  }
};

}  // namespace octavo
