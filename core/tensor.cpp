#include "core/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace octavo {

Tensor::Tensor(void* data, std::initializer_list<std::int64_t> shape, DType type)
    : data_(data), rank_(static_cast<int>(shape.size())), type_(type) {
  expect(shape.size() >= 1 && shape.size() <= kMaxRank, "Tensor: rank must be 1 to 4");
  std::copy(shape.begin(), shape.end(), shape_.begin());
  expect(std::all_of(shape.begin(), shape.end(), [](std::int64_t d) { return d >= 0; }),
         "Tensor: a dimension is negative");
  row_stride_ = 1;
  for (int i = 1; i < rank_; ++i) row_stride_ *= shape_[static_cast<std::size_t>(i)];
}

std::int64_t Tensor::elements() const {
  std::int64_t n = present() ? 1 : 0;
  for (int i = 0; i < rank_; ++i) n *= shape_[static_cast<std::size_t>(i)];
  return n;
}

std::int64_t Tensor::bytes() const {
  return elements() * static_cast<std::int64_t>(bytes_of(type_));
}

bool Tensor::contiguous() const {
  return !present() || elements() == dim(0) * row_stride_ || dim(0) <= 1;
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t count) const {
  expect(begin >= 0 && count >= 0 && begin + count <= dim(0), "Tensor::rows: out of range");
  Tensor t = *this;
  t.shape_[0] = count;
  t.data_ = static_cast<char*>(data_) +
            static_cast<std::ptrdiff_t>(bytes_of(type_)) * begin * row_stride_;
  return t;
}

Tensor Tensor::columns(std::int64_t begin, std::int64_t count) const {
  expect(rank_ == 2, "Tensor::columns: needs two dimensions");
  expect(begin >= 0 && count >= 0 && begin + count <= dim(1), "Tensor::columns: out of range");
  Tensor t = *this;
  t.shape_[1] = count;
  t.data_ = static_cast<char*>(data_) + static_cast<std::ptrdiff_t>(bytes_of(type_)) * begin;
  return t;
}

Tensor Tensor::reshaped(std::initializer_list<std::int64_t> shape) const {
  expect(contiguous(), "Tensor::reshaped: rows are apart");
  const Tensor t(data_, shape, type_);
  expect(t.elements() == elements(), "Tensor::reshaped: another number of elements");
  return t;
}

std::string Tensor::description() const {
  if (!present()) return "absent";
  return fmt::format("{} [{}]", name_of(type_),
                     fmt::join(shape_.begin(), shape_.begin() + rank_, ", "));
}

void expect_shape(const Tensor& t, std::initializer_list<std::int64_t> shape,
                  std::string_view name) {
  bool same = t.rank() == static_cast<int>(shape.size());
  for (int i = 0; same && i < t.rank(); ++i) same = t.dim(i) == *(shape.begin() + i);
  if (!same) {
    throw InternalError(
        fmt::format("{} is {}, expected [{}]", name, t.description(), fmt::join(shape, ", ")));
  }
}

void expect_dtype(const Tensor& t, DType type, std::string_view name) {
  if (t.dtype() != type) {
    throw InternalError(fmt::format("{} is {}, expected {}", name, t.description(), name_of(type)));
  }
}

}  // namespace octavo
