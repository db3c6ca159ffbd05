#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace octavo {

/// Element type of a Tensor. Compute types are f32, f64 (gradient tests) and bf16.
enum class DType : std::uint8_t { f32, f64, bf16, i32, i64, u8 };

/// The upper half of a float: 8 bits of exponent, 7 of fraction. Storage only; arithmetic is float.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  /// Rounds to nearest, ties to even; a NaN stays a NaN.
  explicit bfloat16(float value) {
    const auto u = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (u & 0x7fffffffu) > 0x7f800000u;
    const std::uint32_t rounded = u + 0x7fffu + ((u >> 16) & 1u);
    bits = static_cast<std::uint16_t>(is_nan ? (u >> 16) | 0x40u : rounded >> 16);
  }
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  explicit operator double() const { return static_cast<float>(*this); }
};

/// Bytes of one element.
constexpr std::size_t bytes_of(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

/// "f32", "bf16", ...
constexpr std::string_view name_of(DType type) {
  switch (type) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
  }
  return "?";
}

template <typename T>
inline constexpr DType kDTypeOf = [] {
  static_assert(sizeof(T) == 0, "no DType for this C++ type");
  return DType::u8;
}();
template <>
inline constexpr DType kDTypeOf<float> = DType::f32;
template <>
inline constexpr DType kDTypeOf<double> = DType::f64;
template <>
inline constexpr DType kDTypeOf<bfloat16> = DType::bf16;
template <>
inline constexpr DType kDTypeOf<std::int32_t> = DType::i32;
template <>
inline constexpr DType kDTypeOf<std::int64_t> = DType::i64;
template <>
inline constexpr DType kDTypeOf<std::uint8_t> = DType::u8;

/// Statistics, gradients and master weights of compute type `type`: f64 for f64, else f32.
constexpr DType statistics_type(DType type) {
  return type == DType::f64 ? DType::f64 : DType::f32;
}

/// The C++ type arithmetic is done in: float for float and bfloat16, double for double.
template <typename T>
struct ComputeTypeOf {
  using type = float;
};
template <>
struct ComputeTypeOf<double> {
  using type = double;
};
template <typename T>
using ComputeType = typename ComputeTypeOf<T>::type;

}  // namespace octavo
