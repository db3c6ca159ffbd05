#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.h"
#include "core/token_batch.h"
#include "model/ops/int8_rows.h"
#include "model/ops/one_thread.h"
#include "model/ops/packed_weight.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace octavo {
namespace {

using Desc = dnnl::memory::desc;
using Data = dnnl::memory::data_type;

// The layout does not depend on the rows of the other operand; these are as good as any.
constexpr std::int64_t kUsualRows = 64;

// int8: as many rows at a time as leave y in a core's second cache, for their sums are read again;
// but enough for the weight to be read seldom.
constexpr std::int64_t kRescaledBytes = 1 << 19, kLeastRows = 32;

Data library_type(DType type) {
  return type == DType::bf16 ? Data::bf16 : Data::f32;
}

const dnnl::engine& engine() {
  static const dnnl::engine cpu{dnnl::engine::kind::cpu, 0};
  return cpu;
}

dnnl::matmul::primitive_desc describe(const Desc& x, const Desc& weight, const Desc& bias,
                                      const Desc& y) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  try {
    return {dnnl::matmul::desc(x, weight, bias, y), attributes, engine()};
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_unimplemented && x.data_type() == Data::bf16) {
      throw UserError(
          "this processor can't multiply bf16: it needs AVX-512; set precision: float32");
    }
    throw InternalError(
        fmt::format("oneDNN: no product of {} x {}: {}", x.dims()[0], weight.dims()[1], e.what()));
  }
}

Desc row_major(std::int64_t rows, std::int64_t columns, Data type, std::int64_t stride) {
  return Desc({rows, columns}, type, {stride, 1});
}

// Processors without VNNI add pairs of products in sixteen bits, and the largest don't fit: here,
// where it can be seen, or silently in a translation.
bool sums_integers_exactly() {
  constexpr std::int64_t kRows = 8, kSide = 64, kLargest = 127;
  const Desc x = row_major(kRows, kSide, Data::s8, kSide),
             y = row_major(kRows, kSide, Data::f32, kSide);
  const Desc weight = row_major(kSide, kSide, Data::s8, kSide);
  const OneThread one;
  const auto description =
      describe(x, Desc(weight.dims(), Data::s8, dnnl::memory::format_tag::any), Desc(), y);
  std::vector<std::int8_t> numbers(kSide * kSide, kLargest);
  std::vector<float> sums(kRows * kSide);
  dnnl::stream stream(engine());
  dnnl::memory plain(weight, engine(), numbers.data());
  dnnl::memory packed(description.weights_desc(), engine());
  dnnl::reorder(plain, packed).execute(stream, plain, packed);
  dnnl::matmul(description)
      .execute(stream,
               {{DNNL_ARG_SRC, dnnl::memory(x, engine(), numbers.data())},
                {DNNL_ARG_WEIGHTS, packed},
                {DNNL_ARG_DST, dnnl::memory(y, engine(), sums.data())},
                {DNNL_ARG_SCRATCHPAD, dnnl::memory(description.scratchpad_desc(), engine())}});
  stream.wait();
  const auto expected = static_cast<float>(kSide * kLargest * kLargest);
  return std::ranges::all_of(sums, [&](float sum) { return sum == expected; });
}

void expect_int8() {
  static const bool exact = sums_integers_exactly();
  if (exact) return;
  throw UserError(
      "this processor can't add products of int8 exactly: it needs VNNI; set precision: float32, "
      "which is also faster here");
}

}  // namespace

struct PackedWeight::Layout {
  Desc desc;
};

PackedWeight::PackedWeight(Context& ctx, const Tensor& weight, WeightFormat format)
    : outputs_(weight.dim(0)),
      inputs_(weight.dim(1)),
      type_(weight.dtype()),
      format_(format),
      layout_(std::make_unique<Layout>()),
      memory_(std::make_unique<Arena>()) {
  const bool int8 = format == WeightFormat::int8;
  expect(type_ == DType::f32 || (type_ == DType::bf16 && !int8), "PackedWeight: no such product");
  if (int8) expect_int8();
  const Data type = int8 ? Data::s8 : library_type(type_);
  layout_->desc = describe(row_major(kUsualRows, inputs_, type, inputs_),
                           Desc({inputs_, outputs_}, type, dnnl::memory::format_tag::any), Desc(),
                           row_major(kUsualRows, outputs_, int8 ? Data::f32 : type, outputs_))
                      .weights_desc();
  if (ctx.device() == Device::plan) return;
  const auto bytes = static_cast<std::int64_t>(layout_->desc.get_size());
  const std::int64_t scale_bytes = round_up(4 * outputs_, Arena::kAlignment);
  memory_ = std::make_unique<Arena>(bytes + (int8 ? scale_bytes : 0) + Arena::kAlignment);
  data_ = memory_->allocate({bytes}, DType::u8);
  Arena rounded(int8 ? round_up(outputs_ * inputs_, Arena::kAlignment) : 0);
  Tensor from = weight;
  if (int8) {
    scales_ = memory_->allocate({outputs_}, DType::f32);
    from = rounded.allocate({outputs_, inputs_}, DType::u8);
    quantise_rows(ctx, weight, from, scales_);
  }
  const OneThread one;
  dnnl::memory source(Desc({inputs_, outputs_}, type, {1, from.row_stride()}), engine(),
                      from.raw());
  dnnl::memory target(layout_->desc, engine(), data_.raw());
  dnnl::stream stream(engine());
  dnnl::reorder(source, target).execute(stream, source, target);
  stream.wait();
}

PackedWeight::~PackedWeight() = default;

struct PackedProducts::Library {
  dnnl::stream stream{engine()};
};

// What a product depends on, besides its operands' addresses.
struct PackedProducts::Shape {
  std::int64_t rows, inputs, outputs, x_row;
  Data type, y_type;
  bool bias;

  bool operator==(const Shape&) const = default;
};

std::size_t PackedProducts::Hash::operator()(const Shape& s) const {
  std::uint64_t h = static_cast<std::uint64_t>(s.type) * 64 +
                    static_cast<std::uint64_t>(s.y_type) * 2 + (s.bias ? 1U : 0U);
  for (const std::int64_t v : {s.rows, s.inputs, s.outputs, s.x_row}) {
    h = (h ^ static_cast<std::uint64_t>(v)) * 0x9E3779B97F4A7C15U;
  }
  return h ^ (h >> 32);
}

// A primitive with its memory objects; the primitive is made at the first run, so that asking for
// the workspace is cheap.
struct PackedProducts::Plan {
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
  dnnl::memory x, weight, bias, y, scratch;
  std::array<dnnl_exec_arg_t, 5> arguments{};
  int argument_count = 0;

  void make_primitive();
};

void PackedProducts::Plan::make_primitive() {
  primitive = dnnl::matmul(description);
  const auto add = [&](int name, dnnl::memory& memory) {
    memory = dnnl::memory(description.query_md(dnnl::query::exec_arg_md, name), engine(),
                          DNNL_MEMORY_NONE);
    arguments[static_cast<std::size_t>(argument_count++)] = {name, memory.get()};
  };
  add(DNNL_ARG_SRC, x);
  add(DNNL_ARG_WEIGHTS, weight);
  add(DNNL_ARG_DST, y);
  add(DNNL_ARG_SCRATCHPAD, scratch);
  if (description.query_md(dnnl::query::exec_arg_md, DNNL_ARG_BIAS).get_size() > 0) {
    add(DNNL_ARG_BIAS, bias);
  }
}

PackedProducts::PackedProducts(Context& ctx) : ctx_(ctx), library_(std::make_unique<Library>()) {}
PackedProducts::~PackedProducts() = default;

PackedProducts::Plan& PackedProducts::plan(const PackedProduct& p, std::int64_t rows) {
  expect(p.y.contiguous(), "a product with a packed weight: rows of y are apart");
  const bool int8 = p.weight.format() == WeightFormat::int8;
  const Shape s{.rows = rows,
                .inputs = p.weight.inputs(),
                .outputs = p.weight.outputs(),
                .x_row = int8 ? p.weight.inputs() : p.x.row_stride(),
                .type = int8 ? Data::s8 : library_type(p.x.dtype()),
                .y_type = library_type(p.y.dtype()),
                .bias = p.bias.present() && !int8};
  std::unique_ptr<Plan>& plan = plans_[s];
  if (plan != nullptr) return *plan;
  const OneThread one;
  plan = std::make_unique<Plan>();
  plan->description = describe(row_major(s.rows, s.inputs, s.type, s.x_row), p.weight.layout_->desc,
                               s.bias ? row_major(1, s.outputs, s.type, s.outputs) : Desc(),
                               row_major(s.rows, s.outputs, s.y_type, s.outputs));
  return *plan;
}

namespace {

/// Rows that a product takes at a time.
std::int64_t rows_at_a_time(const PackedProduct& p) {
  if (p.weight.format() != WeightFormat::int8) return p.x.dim(0);
  const std::int64_t rows = kRescaledBytes / (4 * p.weight.outputs());
  return std::min(p.x.dim(0), std::max(rows / kLeastRows * kLeastRows, kLeastRows));
}

/// int8: bytes of the rounded rows; those of their scales follow.
std::int64_t rounded_bytes(const PackedProduct& p, std::int64_t rows) {
  if (p.weight.format() != WeightFormat::int8) return 0;
  return round_up(rows * p.weight.inputs(), Arena::kAlignment);
}

std::int64_t scale_bytes(const PackedProduct& p, std::int64_t rows) {
  return p.weight.format() == WeightFormat::int8 ? round_up(4 * rows, Arena::kAlignment) : 0;
}

void point(dnnl::memory& memory, const void* data) {
  const dnnl_status_t status = dnnl_memory_set_data_handle(memory.get(), const_cast<void*>(data));
  expect(status == dnnl_success, "oneDNN: pointing at an operand failed");
}

}  // namespace

std::int64_t PackedProducts::workspace(const PackedProduct& product) {
  const std::int64_t most = rows_at_a_time(product), rest = product.x.dim(0) % most;
  const auto bytes = [&](std::int64_t rows) {
    if (rows == 0) return std::int64_t{0};
    const std::size_t library = plan(product, rows).description.scratchpad_desc().get_size();
    return static_cast<std::int64_t>(library);
  };
  return rounded_bytes(product, most) + scale_bytes(product, most) +
         std::max(bytes(most), bytes(rest));
}

void PackedProducts::run(const PackedProduct& product, std::byte* workspace) {
  const std::int64_t N = product.x.dim(0), most = rows_at_a_time(product);
  for (std::int64_t first = 0; first < N; first += most) {
    const std::int64_t rows = std::min(most, N - first);
    run_rows({.x = product.x.rows(first, rows),
              .bias = product.bias,
              .weight = product.weight,
              .y = product.y.rows(first, rows)},
             workspace);
  }
}

void PackedProducts::run_rows(const PackedProduct& p, std::byte* workspace) {
  const std::int64_t rows = p.x.dim(0), I = p.weight.inputs();
  const bool int8 = p.weight.format() == WeightFormat::int8;
  Plan& product = plan(p, rows);
  if (product.argument_count == 0) product.make_primitive();
  const Tensor rounded(workspace, {rows, I}, DType::u8);
  const Tensor scales(workspace + rounded_bytes(p, rows), {rows}, DType::f32);
  if (int8) quantise_rows(ctx_, p.x, rounded, scales);
  point(product.x, int8 ? rounded.raw() : p.x.raw());
  point(product.weight, p.weight.data_.raw());
  if (!int8 && p.bias.present()) point(product.bias, p.bias.raw());
  point(product.y, p.y.raw());
  point(product.scratch, workspace + rounded_bytes(p, rows) + scale_bytes(p, rows));
  const OneThread one;
  const dnnl_status_t status =
      dnnl_primitive_execute(product.primitive.get(), library_->stream.get(),
                             product.argument_count, product.arguments.data());
  expect(status == dnnl_success, "oneDNN: a product with a packed weight failed");
  if (int8) rescale(ctx_, p.y, scales, p.weight.scales(), p.bias);
}

}  // namespace octavo
