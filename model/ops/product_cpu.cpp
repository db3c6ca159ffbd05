#include "model/ops/product_cpu.h"

#include <fmt/format.h>
#include <omp.h>

#include <array>
#include <optional>

#include "core/arena.h"
#include "core/error.h"
#include "core/philox.h"
#include "core/token_batch.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace octavo {
namespace {

// Shapes kept. Training sees a few dozen; decoding may see many row counts. All are dropped when
// there are more: rare, and simpler than knowing which was used last.
constexpr std::size_t kEntriesKept = 1024;

// oneDNN takes its number of threads from OpenMP's setting of the calling thread.
class ThreadScope {
 public:
  explicit ThreadScope(int threads) : before_(omp_get_max_threads()) {
    if (threads != before_) omp_set_num_threads(threads);
  }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;
  ~ThreadScope() { omp_set_num_threads(before_); }

 private:
  int before_;
};

void check(dnnl_status_t status, const char* doing) {
  if (status != dnnl_success) {
    throw InternalError(
        fmt::format("oneDNN: {} failed with status {}", doing, static_cast<int>(status)));
  }
}

dnnl::memory::data_type library_type(DType type) {
  return type == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

std::int64_t aligned(std::size_t bytes) {
  return round_up(static_cast<std::int64_t>(bytes), Arena::kAlignment);
}

}  // namespace

struct ProductLibrary::Library {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

// What is kept for one shape. Primitives (which compile code) are made at the first run only, so
// that asking for the workspace is cheap.
struct ProductLibrary::Entry {
  dnnl::matmul::primitive_desc description;
  dnnl::memory::desc b_given, c_desc;
  std::int64_t packed_bytes = 0, scratch_bytes = 0, repack_scratch_bytes = 0;
  std::optional<dnnl::reorder::primitive_desc> repack_description;

  std::optional<dnnl::matmul> product;
  std::optional<dnnl::reorder> repack;
  dnnl::memory a, b, b_packed, bias, c, scratch, repack_scratch;
  std::array<dnnl_exec_arg_t, 5> arguments{};
  int argument_count = 0;
  std::array<dnnl_exec_arg_t, 3> repack_arguments{};

  Entry(const Product& p, const dnnl::engine& engine);
  void make_primitives(const dnnl::engine& engine);
};

ProductLibrary::Entry::Entry(const Product& p, const dnnl::engine& engine) {
  using Desc = dnnl::memory::desc;
  const auto type = library_type(p.type);
  const Desc a_desc({p.m, p.k}, type, {p.a_row, p.a_column});
  b_given = Desc({p.k, p.n}, type, {p.b_row, p.b_column});
  c_desc = Desc({p.m, p.n}, library_type(p.c_type), {p.c_row, 1});
  const Desc b_desc = p.repack ? Desc({p.k, p.n}, type, dnnl::memory::format_tag::any) : b_given;
  const Desc bias_desc = p.bias ? Desc({1, p.n}, type, {p.n, 1}) : Desc();
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (p.accumulate) {
    dnnl::post_ops after;
    after.append_sum(1.0f);
    attributes.set_post_ops(after);
  }
  try {
    description = {dnnl::matmul::desc(a_desc, b_desc, bias_desc, c_desc), attributes, engine};
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_unimplemented && p.type == DType::bf16) {
      throw UserError(
          "this processor can't multiply bf16: it needs AVX-512; set precision: float32");
    }
    throw InternalError(
        fmt::format("oneDNN: no product {} x {} x {}: {}", p.m, p.n, p.k, e.what()));
  }
  scratch_bytes = aligned(description.scratchpad_desc().get_size());
  if (p.repack && description.weights_desc() != b_given) {
    dnnl::primitive_attr repack_attributes;
    repack_attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    repack_description.emplace(engine, b_given, engine, description.weights_desc(),
                               repack_attributes);
    packed_bytes = aligned(description.weights_desc().get_size());
    repack_scratch_bytes = aligned(repack_description->scratchpad_desc().get_size());
  }
}

void ProductLibrary::Entry::make_primitives(const dnnl::engine& engine) {
  product.emplace(description);
  const auto memory = [&](const dnnl::memory::desc& desc) {
    return dnnl::memory(desc, engine, DNNL_MEMORY_NONE);
  };
  const auto add = [&](int name, dnnl::memory& m) {
    arguments[static_cast<std::size_t>(argument_count++)] = {name, m.get()};
  };
  a = memory(description.src_desc());
  b = memory(b_given);
  c = memory(c_desc);
  scratch = memory(description.scratchpad_desc());
  add(DNNL_ARG_SRC, a);
  if (repack_description) {
    repack.emplace(*repack_description);
    b_packed = memory(description.weights_desc());
    repack_scratch = memory(repack_description->scratchpad_desc());
    repack_arguments = {dnnl_exec_arg_t{DNNL_ARG_FROM, b.get()},
                        dnnl_exec_arg_t{DNNL_ARG_TO, b_packed.get()},
                        dnnl_exec_arg_t{DNNL_ARG_SCRATCHPAD, repack_scratch.get()}};
    add(DNNL_ARG_WEIGHTS, b_packed);
  } else {
    add(DNNL_ARG_WEIGHTS, b);
  }
  add(DNNL_ARG_DST, c);
  add(DNNL_ARG_SCRATCHPAD, scratch);
  if (description.query_md(dnnl::query::exec_arg_md, DNNL_ARG_BIAS).get_size() > 0) {
    bias = memory(description.query_md(dnnl::query::exec_arg_md, DNNL_ARG_BIAS));
    add(DNNL_ARG_BIAS, bias);
  }
}

ProductLibrary::ProductLibrary(Context& ctx)
    : threads_(ctx.threads()), library_(std::make_unique<Library>()) {}
ProductLibrary::~ProductLibrary() = default;

std::size_t ProductLibrary::Hash::operator()(const Product& p) const {
  std::uint64_t h = static_cast<std::uint64_t>(p.type) * 64 +
                    static_cast<std::uint64_t>(p.c_type) * 8 + (p.bias ? 4u : 0u) +
                    (p.accumulate ? 2u : 0u) + (p.repack ? 1u : 0u);
  for (const std::int64_t v : {p.m, p.n, p.k, p.a_row, p.a_column, p.b_row, p.b_column, p.c_row}) {
    h = (h ^ static_cast<std::uint64_t>(v)) * 0x9E3779B97F4A7C15u;
  }
  return h ^ (h >> 32);
}

ProductLibrary::Entry& ProductLibrary::entry(const Product& product) {
  const auto found = entries_.find(product);
  if (found != entries_.end()) return *found->second;
  if (entries_.size() >= kEntriesKept) entries_.clear();
  const ThreadScope threads(threads_);
  auto made = std::make_unique<Entry>(product, library_->engine);
  return *entries_.emplace(product, std::move(made)).first->second;
}

std::int64_t ProductLibrary::workspace(const Product& product) {
  const Entry& e = entry(product);
  return e.packed_bytes + e.scratch_bytes + e.repack_scratch_bytes;
}

void ProductLibrary::run(const Product& product, const ProductOperands& operands, void* workspace) {
  Entry& e = entry(product);
  const ThreadScope threads(threads_);
  if (!e.product) e.make_primitives(library_->engine);
  const auto point = [](dnnl::memory& m, const void* data) {
    check(dnnl_memory_set_data_handle(m.get(), const_cast<void*>(data)), "pointing at an operand");
  };
  auto* bytes = static_cast<std::byte*>(workspace);
  point(e.a, operands.a);
  point(e.b, operands.b);
  point(e.c, operands.c);
  point(e.scratch, bytes);
  if (product.bias) point(e.bias, operands.bias);
  dnnl_stream_t stream = library_->stream.get();
  if (e.repack) {
    point(e.repack_scratch, bytes + e.scratch_bytes);
    point(e.b_packed, bytes + e.scratch_bytes + e.repack_scratch_bytes);
    check(
        dnnl_primitive_execute(e.repack->get(), stream, static_cast<int>(e.repack_arguments.size()),
                               e.repack_arguments.data()),
        "packing a matrix");
  }
  check(dnnl_primitive_execute(e.product->get(), stream, e.argument_count, e.arguments.data()),
        "a product");
}

}  // namespace octavo
