#include "model/ops/product_cpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <vector>

#include "core/parallel.h"
#include "core/token_batch.h"
#include "model/ops/one_thread.h"
#include "model/ops/transpose_cpu.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace octavo {
namespace {

// Shapes kept. Training sees some hundred: micro-batches of an update are about equal, but rows are
// any multiple of 64. All are dropped when there are more: rare, and simpler than knowing which was
// used last.
constexpr std::size_t kProductsKept = 4096;

// Below so many multiplications, waking a second thread costs more than it saves.
constexpr std::int64_t kSmallProduct = 1 << 19;

void check(dnnl_status_t status, const char* doing) {
  if (status != dnnl_success) {
    throw InternalError(
        fmt::format("oneDNN: {} failed with status {}", doing, static_cast<int>(status)));
  }
}

dnnl::memory::data_type library_type(DType type) {
  return type == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

dnnl::matmul::primitive_desc describe(const Product& p, const dnnl::engine& engine) {
  using Desc = dnnl::memory::desc;
  const auto type = library_type(p.type);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (p.accumulate) {
    dnnl::post_ops after;
    after.append_sum(1.0f);
    attributes.set_post_ops(after);
  }
  const dnnl::matmul::desc operation(Desc({p.m, p.k}, type, {p.a_row, p.a_column}),
                                     Desc({p.k, p.n}, type, {p.b_row, p.b_column}),
                                     p.bias ? Desc({1, p.n}, type, {p.n, 1}) : Desc(),
                                     Desc({p.m, p.n}, library_type(p.c_type), {p.c_row, 1}));
  try {
    return {operation, attributes, engine};
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_unimplemented && p.type == DType::bf16) {
      throw UserError(
          "this processor can't multiply bf16: it needs AVX-512; set precision: float32");
    }
    throw InternalError(
        fmt::format("oneDNN: no product {} x {} x {}: {}", p.m, p.n, p.k, e.what()));
  }
}

bool transposed(const Product& p) {
  return p.a_row == 1 && p.a_column != 1;
}

}  // namespace

// Every thread copies the part of b that it needs into the library's layout, which is dear when its
// tile has few rows. A tile narrower than c makes the library fall back to a kernel that is slower
// and allocates. The weights were fitted to measurements.
TileGrid choose_tiles(std::int64_t m, std::int64_t n, std::int64_t k, int threads) {
  constexpr double kCopyB = 6, kNarrow = 1.15;
  constexpr std::int64_t kGrain = 16;  // of the library's kernels, both ways
  TileGrid best{m, n};
  if (m * n * k < kSmallProduct) return best;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t down = 1; down <= threads; ++down) {
    const std::int64_t across = threads / down;
    const TileGrid grid{std::min(m, round_up((m + down - 1) / down, kGrain)),
                        std::min(n, round_up((n + across - 1) / across, kGrain))};
    const auto rows = static_cast<double>(grid.rows), columns = static_cast<double>(grid.columns);
    const double cost = (rows + kCopyB) * columns * (grid.columns < n ? kNarrow : 1);
    if (cost < least) {
      least = cost;
      best = grid;
    }
  }
  return best;
}

// Pieces of at most this many bytes are transposed at a time: half of a core's second cache.
TilePieces choose_pieces(const Product& p, const TileGrid& grid) {
  if (!transposed(p)) return {grid.rows, p.k};
  constexpr std::int64_t kCopyBytes = 1 << 19, kRowBytes = 2047, kLine = 64;
  const auto element = static_cast<std::int64_t>(bytes_of(p.type));
  const std::int64_t parts = (p.k * element + kRowBytes - 1) / kRowBytes;
  const std::int64_t lines = ((p.k + parts - 1) / parts * element + kLine - 1) / kLine;
  // An odd number of cache lines: rows a power of two apart would evict one another.
  const std::int64_t depth = std::min(p.k, (lines + 1 - lines % 2) * kLine / element);
  const std::int64_t rows = std::max<std::int64_t>(16, kCopyBytes / (depth * element) / 16 * 16);
  return {std::min(grid.rows, rows), depth};
}

struct ProductLibrary::Library {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
};

// One shape in one tile: memory objects and the list of arguments, so that nothing is made when it
// runs.
struct ProductLibrary::Slot {
  std::array<std::int64_t, 3> shape;  // m, n, k
  const dnnl::matmul* primitive;
  dnnl::memory a, b, bias, c, scratch;
  std::array<dnnl_exec_arg_t, 5> arguments{};
  int argument_count = 0;

  Slot(const std::array<std::int64_t, 3>& shape_, const dnnl::matmul& matmul,
       const dnnl::matmul::primitive_desc& description, const dnnl::engine& engine)
      : shape(shape_), primitive(&matmul) {
    const auto add = [&](int name, dnnl::memory& memory) {
      const auto desc = description.query_md(dnnl::query::exec_arg_md, name);
      if (desc.get_size() == 0 && name == DNNL_ARG_BIAS) return;
      memory = dnnl::memory(desc, engine, DNNL_MEMORY_NONE);
      arguments[static_cast<std::size_t>(argument_count++)] = {name, memory.get()};
    };
    add(DNNL_ARG_SRC, a);
    add(DNNL_ARG_WEIGHTS, b);
    add(DNNL_ARG_DST, c);
    add(DNNL_ARG_SCRATCHPAD, scratch);
    add(DNNL_ARG_BIAS, bias);
  }
};

// What is kept for one product. Primitives (which compile code) are made at the first run only, so
// that asking for the workspace is cheap.
struct ProductLibrary::Plan {
  struct Kernel {
    std::array<std::int64_t, 3> shape;  // m, n, k
    dnnl::matmul::primitive_desc description;
    dnnl::matmul primitive;
  };
  struct Tile {
    std::int64_t row, column;  // of c, in elements
    dnnl::stream stream;
    std::vector<Slot> slots;
  };

  Product product;
  TileGrid grid;
  TilePieces pieces;
  std::vector<Kernel> kernels;
  std::int64_t scratch_bytes = 0, copy_bytes = 0;  // of one tile
  std::vector<Tile> tiles;

  Plan(const Product& p, const dnnl::engine& engine, int threads);
  void make_primitives(const dnnl::engine& engine);
  void run_tile(Tile& tile, const ProductOperands& operands, std::byte* workspace);
  void run_piece(Tile& tile, const ProductOperands& operands, std::byte* workspace,
                 const std::array<std::int64_t, 3>& start);
  // Of the piece that starts at (row, column, depth); those at the edges are smaller.
  std::array<std::int64_t, 3> shape_at(const Tile& tile,
                                       const std::array<std::int64_t, 3>& start) const {
    const std::int64_t tile_end = std::min(product.m, tile.row + grid.rows);
    return {std::min(pieces.rows, tile_end - start[0]),
            std::min(grid.columns, product.n - start[1]),
            std::min(pieces.depth, product.k - start[2])};
  }
  // Calls f with the start of each piece of a tile.
  template <typename F>
  void for_pieces(const Tile& tile, F&& f) const {
    const std::int64_t tile_end = std::min(product.m, tile.row + grid.rows);
    for (std::int64_t k = 0; k < product.k; k += pieces.depth) {
      for (std::int64_t row = tile.row; row < tile_end; row += pieces.rows) {
        f(std::array{row, tile.column, k});
      }
    }
  }
};

ProductLibrary::Plan::Plan(const Product& p, const dnnl::engine& engine, int threads)
    : product(p), grid(choose_tiles(p.m, p.n, p.k, threads)), pieces(choose_pieces(p, grid)) {
  expect(!transposed(p) || p.accumulate, "product: a transposed a is summed in pieces");
  for (std::int64_t row = 0; row < p.m; row += grid.rows) {
    for (std::int64_t column = 0; column < p.n; column += grid.columns) {
      tiles.push_back({.row = row, .column = column, .stream = {}, .slots = {}});
    }
  }
  for (const Tile& tile : tiles) {
    for_pieces(tile, [&](const std::array<std::int64_t, 3>& start) {
      const auto shape = shape_at(tile, start);
      const auto same = [&](const Kernel& kernel) { return kernel.shape == shape; };
      if (std::any_of(kernels.begin(), kernels.end(), same)) return;
      Product part = p;
      std::tie(part.m, part.n, part.k) = std::tie(shape[0], shape[1], shape[2]);
      if (transposed(p)) {
        part.a_row = part.k;
        part.a_column = 1;
        copy_bytes = std::max(
            copy_bytes, round_up(part.m * part.k * static_cast<std::int64_t>(bytes_of(p.type)),
                                 Arena::kAlignment));
      }
      kernels.push_back({.shape = shape, .description = describe(part, engine), .primitive = {}});
      const auto bytes = kernels.back().description.scratchpad_desc().get_size();
      scratch_bytes =
          std::max(scratch_bytes, round_up(static_cast<std::int64_t>(bytes), Arena::kAlignment));
    });
  }
}

void ProductLibrary::Plan::make_primitives(const dnnl::engine& engine) {
  for (Kernel& kernel : kernels) kernel.primitive = dnnl::matmul(kernel.description);
  for (Tile& tile : tiles) {
    tile.stream = dnnl::stream(engine);
    for (const Kernel& kernel : kernels) {
      tile.slots.emplace_back(kernel.shape, kernel.primitive, kernel.description, engine);
    }
  }
}

void ProductLibrary::Plan::run_tile(Tile& tile, const ProductOperands& operands,
                                    std::byte* workspace) {
  for_pieces(tile, [&](const std::array<std::int64_t, 3>& start) {
    run_piece(tile, operands, workspace, start);
  });
}

void ProductLibrary::Plan::run_piece(Tile& tile, const ProductOperands& operands,
                                     std::byte* workspace,
                                     const std::array<std::int64_t, 3>& start) {
  const Product& p = product;
  const auto [row, column, depth] = start;
  const auto shape = shape_at(tile, start);
  Slot& slot = *std::find_if(tile.slots.begin(), tile.slots.end(),
                             [&](const Slot& s) { return s.shape == shape; });
  const auto at = [](const void* data, DType type, std::int64_t offset) {
    return static_cast<const std::byte*>(data) + offset * static_cast<std::int64_t>(bytes_of(type));
  };
  const auto point = [](dnnl::memory& memory, const std::byte* data) {
    check(dnnl_memory_set_data_handle(memory.get(), const_cast<std::byte*>(data)),
          "pointing at an operand");
  };
  const std::byte* a = at(operands.a, p.type, row * p.a_row + depth * p.a_column);
  if (transposed(p)) {
    std::byte* copy = workspace + scratch_bytes;
    transpose({.type = p.type,
               .from = a,
               .rows = shape[2],
               .columns = shape[0],
               .from_stride = p.a_column,
               .to = copy,
               .to_stride = shape[2]});
    a = copy;
  }
  point(slot.a, a);
  point(slot.b, at(operands.b, p.type, depth * p.b_row + column * p.b_column));
  if (p.bias) point(slot.bias, at(operands.bias, p.type, column));
  point(slot.c, at(operands.c, p.c_type, row * p.c_row + column));
  point(slot.scratch, workspace);
  check(dnnl_primitive_execute(slot.primitive->get(), tile.stream.get(), slot.argument_count,
                               slot.arguments.data()),
        "a product");
}

ProductLibrary::ProductLibrary(Context& ctx) : ctx_(ctx), library_(std::make_unique<Library>()) {}
ProductLibrary::~ProductLibrary() = default;

std::size_t ProductLibrary::Hash::operator()(const Product& p) const {
  std::uint64_t h = static_cast<std::uint64_t>(p.type) * 32 +
                    static_cast<std::uint64_t>(p.c_type) * 4 + (p.bias ? 2u : 0u) +
                    (p.accumulate ? 1u : 0u);
  for (const std::int64_t v : {p.m, p.n, p.k, p.a_row, p.a_column, p.b_row, p.b_column, p.c_row}) {
    h = (h ^ static_cast<std::uint64_t>(v)) * 0x9E3779B97F4A7C15u;
  }
  return h ^ (h >> 32);
}

ProductLibrary::Plan& ProductLibrary::plan(const Product& product) {
  const auto found = plans_.find(product);
  if (found != plans_.end()) return *found->second;
  if (plans_.size() >= kProductsKept) plans_.clear();
  const OneThread one;
  auto made = std::make_unique<Plan>(product, library_->engine, ctx_.threads());
  return *plans_.emplace(product, std::move(made)).first->second;
}

std::int64_t ProductLibrary::workspace(const Product& product) {
  const Plan& p = plan(product);
  return static_cast<std::int64_t>(p.tiles.size()) * (p.scratch_bytes + p.copy_bytes);
}

void ProductLibrary::run(const Product& product, const ProductOperands& operands, void* workspace) {
  Plan& p = plan(product);
  const OneThread one;
  if (p.tiles.front().slots.empty()) p.make_primitives(library_->engine);
  const std::int64_t tile_bytes = p.scratch_bytes + p.copy_bytes;
  parallel_for(ctx_, static_cast<std::int64_t>(p.tiles.size()), 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t t = begin; t < end; ++t) {
                   p.run_tile(p.tiles[static_cast<std::size_t>(t)], operands,
                              static_cast<std::byte*>(workspace) + t * tile_bytes);
                 }
               });
}

}  // namespace octavo
