#include "tests/testkit/tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace octavo::testkit {
namespace {

constexpr std::size_t kFence = 64;  // bytes
constexpr std::byte kCanary{0xA5};

double get_element(const Tensor& t, std::int64_t offset) {
  const auto* p = static_cast<const std::byte*>(t.raw()) +
                  static_cast<std::ptrdiff_t>(bytes_of(t.dtype())) * offset;
  const auto read = [p]<typename T>(T value) {
    std::memcpy(&value, p, sizeof value);
    return static_cast<double>(value);
  };
  switch (t.dtype()) {
    case DType::f32:
      return read(float{});
    case DType::f64:
      return read(double{});
    case DType::bf16:
      return read(bfloat16{});
    case DType::i32:
      return read(std::int32_t{});
    case DType::i64:
      return read(std::int64_t{});
    case DType::u8:
      return read(std::uint8_t{});
  }
  return 0;
}

void set_element(const Tensor& t, std::int64_t offset, double value) {
  auto* p =
      static_cast<std::byte*>(t.raw()) + static_cast<std::ptrdiff_t>(bytes_of(t.dtype())) * offset;
  const auto write = [p](auto v) { std::memcpy(p, &v, sizeof v); };
  switch (t.dtype()) {
    case DType::f32:
      return write(static_cast<float>(value));
    case DType::f64:
      return write(value);
    case DType::bf16:
      return write(bfloat16(static_cast<float>(value)));
    case DType::i32:
      return write(static_cast<std::int32_t>(value));
    case DType::i64:
      return write(static_cast<std::int64_t>(value));
    case DType::u8:
      return write(static_cast<std::uint8_t>(value));
  }
}

bool is_float(DType type) {
  return type == DType::f32 || type == DType::f64 || type == DType::bf16;
}

}  // namespace

TestTensor::TestTensor(std::initializer_list<std::int64_t> shape, DType type)
    : view_(nullptr, shape, type) {
  allocate();
  const double start = is_float(type) ? std::numeric_limits<double>::quiet_NaN() : 0.0;
  for (std::int64_t i = 0; i < view_.elements(); ++i) set(i, start);
}

TestTensor::TestTensor(std::initializer_list<std::int64_t> shape, DType type,
                       const std::vector<double>& values)
    : TestTensor(shape, type) {
  set(values);
}

TestTensor::TestTensor(const TestTensor& other) : view_(other.view_) {
  if (!view_.present()) return;
  allocate();
  std::memcpy(view_.raw(), other.view_.raw(), static_cast<std::size_t>(view_.bytes()));
}

TestTensor& TestTensor::operator=(const TestTensor& other) {
  if (this == &other) return *this;
  view_ = other.view_;
  memory_.clear();
  if (!view_.present()) return *this;
  allocate();
  std::memcpy(view_.raw(), other.view_.raw(), static_cast<std::size_t>(view_.bytes()));
  return *this;
}

void TestTensor::allocate() {
  const auto bytes = static_cast<std::size_t>(view_.bytes());
  memory_.assign(bytes + 2 * kFence, kCanary);
  std::byte* start = memory_.data() + kFence;
  switch (view_.rank()) {
    case 1:
      view_ = Tensor(start, {view_.dim(0)}, view_.dtype());
      break;
    case 2:
      view_ = Tensor(start, {view_.dim(0), view_.dim(1)}, view_.dtype());
      break;
    case 3:
      view_ = Tensor(start, {view_.dim(0), view_.dim(1), view_.dim(2)}, view_.dtype());
      break;
    default:
      view_ =
          Tensor(start, {view_.dim(0), view_.dim(1), view_.dim(2), view_.dim(3)}, view_.dtype());
  }
}

TestTensor TestTensor::random(std::initializer_list<std::int64_t> shape, DType type,
                              RandomStream& stream, double deviation) {
  TestTensor t(shape, type);
  for (std::int64_t i = 0; i < t.view_.elements(); ++i) t.set(i, deviation * stream.normal());
  return t;
}

TestTensor TestTensor::zeros(std::initializer_list<std::int64_t> shape, DType type) {
  TestTensor t(shape, type);
  for (std::int64_t i = 0; i < t.view_.elements(); ++i) t.set(i, 0);
  return t;
}

std::vector<double> TestTensor::values() const {
  return values_of(view_);
}

void TestTensor::set(const std::vector<double>& values) {
  expect(static_cast<std::int64_t>(values.size()) == view_.elements(),
         "TestTensor::set: another number of values");
  for (std::int64_t i = 0; i < view_.elements(); ++i) set(i, values[static_cast<std::size_t>(i)]);
}

double TestTensor::get(std::int64_t i) const {
  return get_element(view_, i);
}
void TestTensor::set(std::int64_t i, double value) {
  set_element(view_, i, value);
}

TestTensor TestTensor::as(DType type) const {
  TestTensor t;
  if (!view_.present()) return t;
  switch (view_.rank()) {
    case 1:
      t = TestTensor({view_.dim(0)}, type);
      break;
    case 2:
      t = TestTensor({view_.dim(0), view_.dim(1)}, type);
      break;
    case 3:
      t = TestTensor({view_.dim(0), view_.dim(1), view_.dim(2)}, type);
      break;
    default:
      t = TestTensor({view_.dim(0), view_.dim(1), view_.dim(2), view_.dim(3)}, type);
  }
  t.set(values());
  return t;
}

bool TestTensor::same_bytes(const TestTensor& other) const {
  return view_.bytes() == other.view_.bytes() &&
         (view_.bytes() == 0 || std::memcmp(view_.raw(), other.view_.raw(),
                                            static_cast<std::size_t>(view_.bytes())) == 0);
}

bool TestTensor::fence_intact() const {
  const auto is_canary = [](std::byte b) { return b == kCanary; };
  return memory_.empty() || (std::all_of(memory_.begin(), memory_.begin() + kFence, is_canary) &&
                             std::all_of(memory_.end() - kFence, memory_.end(), is_canary));
}

std::vector<double> values_of(const Tensor& t) {
  std::vector<double> values;
  if (t.elements() == 0) return values;
  const std::int64_t width = t.elements() / t.dim(0);
  values.reserve(static_cast<std::size_t>(t.elements()));
  for (std::int64_t n = 0; n < t.dim(0); ++n) {
    for (std::int64_t i = 0; i < width; ++i) {
      values.push_back(get_element(t, n * t.row_stride() + i));
    }
  }
  return values;
}

std::string mismatch(const Tensor& actual, const std::vector<double>& expected,
                     Tolerance tolerance) {
  const std::vector<double> values = values_of(actual);
  if (values.size() != expected.size()) {
    return fmt::format("{} has {} elements, expected {}", actual.description(), values.size(),
                       expected.size());
  }
  std::size_t worst = 0, wrong = 0;
  double worst_excess = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == expected[i] || (std::isnan(values[i]) && std::isnan(expected[i]))) continue;
    const double allowed = tolerance.absolute + tolerance.relative * std::abs(expected[i]);
    double excess = std::abs(values[i] - expected[i]) / allowed;
    if (std::isnan(excess)) excess = std::numeric_limits<double>::infinity();
    if (excess <= 1) continue;
    ++wrong;
    if (excess > worst_excess) {
      worst_excess = excess;
      worst = i;
    }
  }
  if (wrong == 0) return "";
  return fmt::format(
      "{} of {} elements differ; the worst, [{}], is {:g}, expected {:g} (allowed {:g} "
      "+ {:g} relative)",
      wrong, values.size(), worst, values[worst], expected[worst], tolerance.absolute,
      tolerance.relative);
}

Tolerance tolerance_of(DType type, double magnitude) {
  const double unit = type == DType::f64 ? 1e-12 : type == DType::f32 ? 2e-5 : 1e-2;
  return {.relative = unit, .absolute = unit * magnitude};
}

}  // namespace octavo::testkit
