#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "core/context.h"
#include "core/tensor.h"

namespace octavo {

/// c [m, n] = a [m, k] b [k, n], with what may be fused to it. Strides count elements; a matrix
/// read transposed is one whose strides are swapped; if that is a, c must be accumulated.
struct Product {
  DType type;    ///< of a, b and bias
  DType c_type;  ///< `type`, or f32 for weight gradients
  std::int64_t m, n, k;
  std::int64_t a_row, a_column;  ///< strides of a
  std::int64_t b_row, b_column;  ///< strides of b
  std::int64_t c_row;            ///< stride of c's rows; its columns are neighbours
  bool bias = false;             ///< adds bias [n] to every row
  bool accumulate = false;       ///< c += instead of c =

  bool operator==(const Product&) const = default;
};

struct ProductOperands {
  const void* a;
  const void* b;
  const void* bias;
  void* c;
};

/// How c is cut into tiles, one for each thread. Each thread then multiplies alone, which keeps
/// bf16 at 95 % of peak where the library's own threads reach 80 to 85 %.
struct TileGrid {
  std::int64_t rows, columns;  ///< of a tile; the last ones may be smaller
};
TileGrid choose_tiles(std::int64_t m, std::int64_t n, std::int64_t k, int threads);

/// How a tile is cut when a is read transposed, as for a weight's gradient: the library's kernels
/// for that are slower and allocate, so each piece of a is transposed by us while it is in cache,
/// and products of pieces are summed. Otherwise a tile is one piece.
struct TilePieces {
  std::int64_t rows;   ///< of c
  std::int64_t depth;  ///< of k
};
TilePieces choose_pieces(const Product& product, const TileGrid& grid);

/// Products of float32 and bf16 matrices through oneDNN, with float32 sums. Primitives are made at
/// the first use of a shape and kept; nothing but the library's list of arguments (a few small
/// blocks, freed at once) is allocated afterwards.
///
/// One per Context: ctx.state<ProductLibrary>().
class ProductLibrary {
 public:
  explicit ProductLibrary(Context& ctx);
  ProductLibrary(const ProductLibrary&) = delete;
  ProductLibrary& operator=(const ProductLibrary&) = delete;
  ~ProductLibrary();

  /// Bytes of scratch that run() needs; on a plan as well. m, n and k must be positive.
  /// @throws UserError  this processor has no bf16 products.
  std::int64_t workspace(const Product& product);
  /// @param workspace  at least as many bytes, aligned to Arena::kAlignment.
  void run(const Product& product, const ProductOperands& operands, void* workspace);

 private:
  struct Library;
  struct Slot;
  struct Plan;
  struct Hash {
    std::size_t operator()(const Product& product) const;
  };
  Plan& plan(const Product& product);

  Context& ctx_;
  std::unique_ptr<Library> library_;
  std::unordered_map<Product, std::unique_ptr<Plan>, Hash> plans_;
};

}  // namespace octavo
