// The pieces that every kernel is made of: loads and stores of any length and type, functions,
// dropout numbers. They live in -inl headers, so this file is compiled per instruction set too.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/model/simd_test.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "model/ops/dropout-inl.h"
#include "model/ops/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace octavo::HWY_NAMESPACE {
namespace {

// y = 2 x through vectors.
template <typename T>
void double_row(const T* x, std::int64_t n, T* y) {
  const VectorTag<T> d;
  for_vectors(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto v = load(d, x + i, part);
    store(d, hn::Add(v, v), y + i, part);
  });
}
void double_f32(const float* x, std::int64_t n, float* y) {
  double_row(x, n, y);
}
void double_f64(const double* x, std::int64_t n, double* y) {
  double_row(x, n, y);
}
void double_bf16(const bfloat16* x, std::int64_t n, bfloat16* y) {
  double_row(x, n, y);
}

void round_row(const float* x, std::int64_t n, bfloat16* y) {
  const VectorTag<float> d;
  for_vectors(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    store(d, load(d, x + i, part), y + i, part);
  });
}

// Sum of 1 + x: lanes beyond the row must not count.
template <typename C>
C sum_plus_one(const C* x, std::int64_t n) {
  const hn::ScalableTag<C> d;
  auto sum = hn::Zero(d);
  for_vectors(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    sum = hn::Add(sum, only(d, hn::Add(load(d, x + i, part), broadcast(d, 1)), part));
  });
  return sum_of_lanes(d, sum);
}
float sum_f32(const float* x, std::int64_t n) {
  return sum_plus_one(x, n);
}
double sum_f64(const double* x, std::int64_t n) {
  return sum_plus_one(x, n);
}

template <typename C>
void functions(const C* x, std::int64_t n, C* e, C* t) {
  const hn::ScalableTag<C> d;
  for_vectors(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    store(d, exp(d, load(d, x + i, part)), e + i, part);
    store(d, sigmoid(d, load(d, x + i, part)), t + i, part);
  });
}
void functions_f32(const float* x, std::int64_t n, float* e, float* t) {
  functions(x, n, e, t);
}
void functions_f64(const double* x, std::int64_t n, double* e, double* t) {
  functions(x, n, e, t);
}

void numbers(std::uint64_t key, std::int64_t ordinal, std::int64_t first, std::int64_t counters,
             std::uint16_t* out) {
  dropout_numbers(key, ordinal, first, counters, out);
}

template <typename T>
void drop_row(const Dropout& dropout, std::int64_t ordinal, const Tensor& row) {
  const VectorTag<T> d;
  const std::int64_t columns = row.dim(0);
  T* p = row.data<T>();
  DropoutRow mask(d, dropout, columns);
  mask.start(ordinal);
  for_vectors(d, columns, [&](std::int64_t c, auto part) HWY_ATTR {
    store(d, mask.apply(d, load(d, p + c, part), c), p + c, part);
  });
}
auto drop_row_kernel() {
  return PerType{drop_row<float>, drop_row<double>, drop_row<bfloat16>};
}

}  // namespace
}  // namespace octavo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/testkit/instruction_sets.h"
#include "tests/testkit/tensors.h"

namespace octavo {
namespace {

HWY_EXPORT(double_f32);
HWY_EXPORT(double_f64);
HWY_EXPORT(double_bf16);
HWY_EXPORT(round_row);
HWY_EXPORT(sum_f32);
HWY_EXPORT(sum_f64);
HWY_EXPORT(functions_f32);
HWY_EXPORT(functions_f64);
HWY_EXPORT(numbers);
HWY_EXPORT(drop_row_kernel);

using testkit::TestTensor;

class Simd : public ::testing::TestWithParam<std::int64_t> {
  testkit::UseInstructionSet use_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(All, Simd, ::testing::ValuesIn(testkit::instruction_sets()),
                         [](const auto& test) { return std::string(hwy::TargetName(test.param)); });

TEST_P(Simd, RunsTheInstructionSetItWasAskedFor) {
  EXPECT_EQ(GetParam(), hwy::SupportedTargets() & -hwy::SupportedTargets());
}

TEST_P(Simd, RowsOfAnyLengthKeepToTheirMemory) {
  RandomStream random(1);
  for (std::int64_t n = 0; n < 70; ++n) {
    for (const DType type : {DType::f32, DType::f64, DType::bf16}) {
      const TestTensor x = TestTensor::random({n}, type, random);
      TestTensor y({n}, type);
      if (type == DType::f32) {
        HWY_DYNAMIC_DISPATCH(double_f32)(x.view().data<float>(), n, y.view().data<float>());
      } else if (type == DType::f64) {
        HWY_DYNAMIC_DISPATCH(double_f64)(x.view().data<double>(), n, y.view().data<double>());
      } else {
        HWY_DYNAMIC_DISPATCH(double_bf16)
        (x.view().data<bfloat16>(), n, y.view().data<bfloat16>());
      }
      std::vector<double> expected = x.values();
      for (double& v : expected) v *= 2;
      EXPECT_EQ(y.values(), expected) << n << " " << name_of(type);
      EXPECT_TRUE(x.fence_intact() && y.fence_intact());
    }
  }
}

TEST_P(Simd, RoundsToBfloat16LikeTheScalar) {
  std::vector<float> x = {0.0f,
                          -0.0f,
                          1.0f,
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(),
                          std::bit_cast<float>(0x7f800001u),  // a NaN whose upper half is infinity
                          std::bit_cast<float>(0xffffffffu),
                          std::numeric_limits<float>::max(),
                          std::numeric_limits<float>::denorm_min()};
  for (std::uint32_t low = 0x7ffe; low <= 0x8001; ++low) {  // around the tie, even and odd
    x.push_back(std::bit_cast<float>(0x3f800000u | low));
    x.push_back(std::bit_cast<float>(0x3f810000u | low));
  }
  RandomStream random(2);
  for (int i = 0; i < 1000; ++i) x.push_back(std::bit_cast<float>(random.next()));
  std::vector<bfloat16> y(x.size());
  HWY_DYNAMIC_DISPATCH(round_row)(x.data(), static_cast<std::int64_t>(x.size()), y.data());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i].bits, bfloat16(x[i]).bits) << x[i];
}

TEST_P(Simd, SumsLeaveOutLanesBeyondTheRow) {
  const std::vector<float> ones(70, 1.0f);
  const std::vector<double> doubles(70, 1.0);
  for (std::int64_t n = 0; n < 70; ++n) {
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(sum_f32)(ones.data(), n), static_cast<float>(2 * n));
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(sum_f64)(doubles.data(), n), static_cast<double>(2 * n));
  }
}

TEST_P(Simd, ExpAndSigmoid) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> x = {-infinity, -1000, -104, -87, -1e-8, 0, 1e-8, 1e-3, 20, 87.9, NAN};
  for (int i = -400; i <= 400; ++i) x.push_back(i / 10.0 * (i % 3 == 0 ? 1 : 0.1));
  const auto n = static_cast<std::int64_t>(x.size());
  const std::vector<float> xf(x.begin(), x.end());
  std::vector<float> ef(x.size()), tf(x.size());
  std::vector<double> e(x.size()), t(x.size());
  HWY_DYNAMIC_DISPATCH(functions_f32)(xf.data(), n, ef.data(), tf.data());
  HWY_DYNAMIC_DISPATCH(functions_f64)(x.data(), n, e.data(), t.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) {
      EXPECT_TRUE(std::isnan(e[i]) && std::isnan(t[i]) && std::isnan(ef[i]) && std::isnan(tf[i]));
      continue;
    }
    const double xs = xf[i];
    EXPECT_NEAR(ef[i], std::exp(xs), 1e-6 * std::exp(xs) + 1e-37) << xs;
    EXPECT_NEAR(tf[i], 1 / (1 + std::exp(-xs)), 2e-7) << xs;
    EXPECT_NEAR(e[i], std::exp(x[i]), 1e-14 * std::exp(x[i])) << x[i];
    EXPECT_NEAR(t[i], 1 / (1 + std::exp(-x[i])), 1e-15) << x[i];
  }
}

TEST_P(Simd, DropoutNumbersAreThoseOfScalarPhilox) {
  const std::uint64_t key = mix(3, 4, 5);
  for (const std::int64_t ordinal : {std::int64_t{0}, std::int64_t{7}, (std::int64_t{1} << 32) + 3,
                                     std::int64_t{1'000'000'007}}) {
    for (const std::int64_t counters : {0, 1, 2, 3, 7, 8, 9, 25, 32, 33, 64}) {
      std::vector<std::uint16_t> out(static_cast<std::size_t>(counters * 8 + 64), 0xA5A5);
      HWY_DYNAMIC_DISPATCH(numbers)(key, ordinal, 11, counters, out.data());
      const auto o = static_cast<std::uint64_t>(ordinal);
      for (std::int64_t i = 0; i < counters; ++i) {
        const auto words =
            philox(key, {static_cast<std::uint32_t>(o), static_cast<std::uint32_t>(o >> 32),
                         static_cast<std::uint32_t>(11 + i), 0});
        for (std::size_t c = 0; c < 8; ++c) {
          const std::uint32_t expected = (words[c / 2] >> (16 * (c % 2))) & 0xffff;
          ASSERT_EQ(out[static_cast<std::size_t>(i) * 8 + c], expected)
              << "counter " << i << " number " << c << " of " << counters;
        }
      }
    }
  }
}

TEST_P(Simd, DropoutRowsOfAnyWidth) {
  const Dropout dropout{.probability = 0.3, .key = 99, .ordinals = {}};
  const std::int64_t ordinal = (std::int64_t{5} << 32) + 17;
  for (const std::int64_t columns : {0, 1, 7, 8, 9, 31, 64, 65, 511, 512, 513, 1100}) {
    std::vector<double> expected;
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto words = philox(dropout.key, {17, 5, static_cast<std::uint32_t>(c / 8), 0});
      const std::uint32_t number =
          (words[static_cast<std::size_t>(c % 8 / 2)] >> (16 * (c % 2))) & 0xffff;
      expected.push_back(number < dropout.threshold() ? 0 : dropout.scale());
    }
    for (const DType type : {DType::f32, DType::f64, DType::bf16}) {
      const TestTensor row({columns}, type, std::vector<double>(expected.size(), 1.0));
      const auto kernels = HWY_DYNAMIC_DISPATCH(drop_row_kernel)();
      const auto kernel = type == DType::f32   ? kernels.f32
                          : type == DType::f64 ? kernels.f64
                                               : kernels.bf16;
      kernel(dropout, ordinal, row);
      EXPECT_EQ("", testkit::mismatch(row, expected, testkit::tolerance_of(type, 0)));
      EXPECT_TRUE(row.fence_intact());
    }
  }
}

}  // namespace
}  // namespace octavo
#endif  // HWY_ONCE
