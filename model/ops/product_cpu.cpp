#include "model/ops/product_cpu.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <vector>

#include "core/parallel.h"
#include "core/token_batch.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace octavo {
namespace {

// Shapes kept. Training sees a few dozen; decoding may see many row counts. All are dropped when
// there are more: rare, and simpler than knowing which was used last.
constexpr std::size_t kProductsKept = 1024;

// Below so many multiplications, waking a second thread costs more than it saves.
constexpr std::int64_t kSmallProduct = 1 << 19;

// oneDNN asks OpenMP how many threads it may use, when a primitive is made and when it runs: one,
// since our threads take a tile each.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
  ~OneThread() { omp_set_num_threads(before_); }

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

}  // namespace

// Every thread copies the part of b that it needs into the library's layout, and reads its part of
// a; both are dear when the tile is narrow the other way. The weights were fitted to measurements.
TileGrid choose_tiles(std::int64_t m, std::int64_t n, std::int64_t k, int threads) {
  constexpr double kCopyB = 6, kReadA = 16;
  constexpr std::int64_t kGrain = 16;  // of the library's kernels, both ways
  TileGrid best{m, n};
  if (m * n * k < kSmallProduct) return best;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t down = 1; down <= threads; ++down) {
    const std::int64_t across = threads / down;
    const TileGrid grid{std::min(m, round_up((m + down - 1) / down, kGrain)),
                        std::min(n, round_up((n + across - 1) / across, kGrain))};
    const auto rows = static_cast<double>(grid.rows), columns = static_cast<double>(grid.columns);
    const double cost = rows * columns * (1 + kCopyB / rows + kReadA / columns);
    if (cost < least) {
      least = cost;
      best = grid;
    }
  }
  return best;
}

struct ProductLibrary::Library {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
};

// One tile's memory objects and list of arguments, so that nothing is made when it runs.
struct ProductLibrary::Tile {
  const dnnl::matmul* primitive;
  std::int64_t row, column;  // of c, in elements
  dnnl::stream stream;
  dnnl::memory a, b, bias, c, scratch;
  std::array<dnnl_exec_arg_t, 5> arguments{};
  int argument_count = 0;

  void add(int name, dnnl::memory& memory, const dnnl::memory::desc& desc,
           const dnnl::engine& engine) {
    memory = dnnl::memory(desc, engine, DNNL_MEMORY_NONE);
    arguments[static_cast<std::size_t>(argument_count++)] = {name, memory.get()};
  }
  void run(const Product& p, const ProductOperands& operands, std::byte* workspace);
};

void ProductLibrary::Tile::run(const Product& p, const ProductOperands& operands,
                               std::byte* workspace) {
  const auto point = [](dnnl::memory& memory, const void* data, DType type, std::int64_t offset) {
    const auto* bytes =
        static_cast<const std::byte*>(data) + offset * static_cast<std::int64_t>(bytes_of(type));
    check(dnnl_memory_set_data_handle(memory.get(), const_cast<std::byte*>(bytes)),
          "pointing at an operand");
  };
  point(a, operands.a, p.type, row * p.a_row);
  point(b, operands.b, p.type, column * p.b_column);
  if (p.bias) point(bias, operands.bias, p.type, column);
  point(c, operands.c, p.c_type, row * p.c_row + column);
  point(scratch, workspace, DType::u8, 0);
  check(dnnl_primitive_execute(primitive->get(), stream.get(), argument_count, arguments.data()),
        "a product");
}

// What is kept for one product. Primitives (which compile code) are made at the first run only, so
// that asking for the workspace is cheap.
struct ProductLibrary::Tiles {
  TileGrid grid;
  // Tiles at the lower and right edges may be smaller: up to four shapes.
  std::map<std::pair<std::int64_t, std::int64_t>, dnnl::matmul::primitive_desc> descriptions;
  std::map<std::pair<std::int64_t, std::int64_t>, dnnl::matmul> primitives;
  std::int64_t scratch_bytes = 0;  // of one tile
  std::vector<Tile> tiles;

  Tiles(const Product& p, const dnnl::engine& engine, int threads);
  void make_primitives(const Product& p, const dnnl::engine& engine);

  template <typename F>
  static void for_tiles(const Product& p, const TileGrid& grid, F&& f) {
    for (std::int64_t row = 0; row < p.m; row += grid.rows) {
      for (std::int64_t column = 0; column < p.n; column += grid.columns) {
        f(row, column, std::min(grid.rows, p.m - row), std::min(grid.columns, p.n - column));
      }
    }
  }
  std::int64_t count(const Product& p) const {
    return (p.m + grid.rows - 1) / grid.rows * ((p.n + grid.columns - 1) / grid.columns);
  }
};

ProductLibrary::Tiles::Tiles(const Product& p, const dnnl::engine& engine, int threads)
    : grid(choose_tiles(p.m, p.n, p.k, threads)) {
  for_tiles(p, grid, [&](std::int64_t, std::int64_t, std::int64_t m, std::int64_t n) {
    auto& description = descriptions[{m, n}];
    if (description) return;
    Product part = p;
    part.m = m;
    part.n = n;
    description = describe(part, engine);
    scratch_bytes = std::max(
        scratch_bytes, round_up(static_cast<std::int64_t>(description.scratchpad_desc().get_size()),
                                Arena::kAlignment));
  });
}

void ProductLibrary::Tiles::make_primitives(const Product& p, const dnnl::engine& engine) {
  for (const auto& [shape, description] : descriptions)
    primitives[shape] = dnnl::matmul(description);
  for_tiles(p, grid, [&](std::int64_t row, std::int64_t column, std::int64_t m, std::int64_t n) {
    const auto& description = descriptions.at({m, n});
    Tile& tile = tiles.emplace_back();
    tile.primitive = &primitives.at({m, n});
    tile.row = row;
    tile.column = column;
    tile.stream = dnnl::stream(engine);
    tile.add(DNNL_ARG_SRC, tile.a, description.src_desc(), engine);
    tile.add(DNNL_ARG_WEIGHTS, tile.b, description.weights_desc(), engine);
    tile.add(DNNL_ARG_DST, tile.c, description.dst_desc(), engine);
    tile.add(DNNL_ARG_SCRATCHPAD, tile.scratch, description.scratchpad_desc(), engine);
    if (p.bias) {
      const auto bias = description.query_md(dnnl::query::exec_arg_md, DNNL_ARG_BIAS);
      tile.add(DNNL_ARG_BIAS, tile.bias, bias, engine);
    }
  });
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

ProductLibrary::Tiles& ProductLibrary::tiles_of(const Product& product) {
  const auto found = products_.find(product);
  if (found != products_.end()) return *found->second;
  if (products_.size() >= kProductsKept) products_.clear();
  const OneThread one;
  auto made = std::make_unique<Tiles>(product, library_->engine, ctx_.threads());
  return *products_.emplace(product, std::move(made)).first->second;
}

std::int64_t ProductLibrary::workspace(const Product& product) {
  const Tiles& tiles = tiles_of(product);
  return tiles.count(product) * tiles.scratch_bytes;
}

void ProductLibrary::run(const Product& product, const ProductOperands& operands, void* workspace) {
  Tiles& tiles = tiles_of(product);
  const OneThread one;
  if (tiles.tiles.empty()) tiles.make_primitives(product, library_->engine);
  parallel_for(ctx_, static_cast<std::int64_t>(tiles.tiles.size()), 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t t = begin; t < end; ++t) {
                   auto* own = static_cast<std::byte*>(workspace) + t * tiles.scratch_bytes;
                   tiles.tiles[static_cast<std::size_t>(t)].run(product, operands, own);
                 }
               });
}

}  // namespace octavo
