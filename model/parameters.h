#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/arena.h"
#include "core/context.h"
#include "core/tensor.h"
#include "model/ops/linear.h"
#include "model/ops/optimizer.h"

namespace octavo {

/// Rows of embeddings are rounded up to this, so that products see few shapes.
inline constexpr std::int64_t kVocabularyMultiple = 64;

/// How a parameter starts.
enum class Init : unsigned char {
  xavier,     ///< uniform in +-sqrt(6 / (rows + columns)); Glorot, Bengio (2010)
  embedding,  ///< normal with deviation columns^-0.5
  zeros,
  ones
};

/// One named parameter: its place in the flat buffers.
struct Parameter {
  std::string
      name;  ///< canonical: q, k and v apart, e.g. "encoder.layers.0.self_attention.q.weight"
  std::vector<std::int64_t> shape;  ///< [rows, columns] or [size], as stored in a checkpoint
  std::int64_t padded_rows;         ///< rows in memory, >= shape[0]; the rest stays zero
  std::int64_t offset = -1;         ///< element of the flat buffers where it begins
  Init init;
  bool decay;  ///< whether weight decay applies (matrices, not biases or norms)
  int group;
  bool stacked = false;  ///< follows its predecessor without a gap (k after q)

  std::int64_t columns() const { return shape.size() == 2 ? shape[1] : 1; }
  std::int64_t padded_size() const { return padded_rows * columns(); }
};

/// Indexes of neighbouring parameters that are used as one matrix (or vector): q, k, v.
struct ParameterSpan {
  int first = -1;
  int count = 1;
};

/// The table of a model's parameters. A model declares them in groups, in the order of forward;
/// seal() lays the groups out in reverse, so that backward finishes the flat gradient from its
/// beginning to its end and a bucket is a contiguous slice.
class ParameterTable {
 public:
  static constexpr std::int64_t kAlignment =
      64;  ///< elements; groups and vectors start at multiples

  /// Begins a group: parameters whose gradients are complete at the same moment of backward.
  int begin_group();
  /// @param padded_rows  0: as many as there are.
  ParameterSpan add_matrix(std::string name, std::int64_t rows, std::int64_t columns, Init init,
                           std::int64_t padded_rows = 0);
  ParameterSpan add_vector(std::string name, std::int64_t size, Init init);
  /// Declares `names` side by side: one matrix [rows * names, columns] in memory.
  ParameterSpan add_packed_matrix(const std::vector<std::string>& names, std::int64_t rows,
                                  std::int64_t columns, Init init);
  ParameterSpan add_packed_vector(const std::vector<std::string>& names, std::int64_t size,
                                  Init init);
  void seal();

  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Elements of a flat buffer, padding included.
  std::int64_t flat_size() const { return flat_size_; }
  /// Trained numbers, padding excluded.
  std::int64_t count() const;
  int groups() const { return groups_; }
  /// Elements [begin, end) of the flat buffers that a group covers.
  struct Slice {
    std::int64_t begin, end;
  };
  Slice group_slice(int group) const;
  /// Neighbouring parameters treated alike by the optimiser.
  std::vector<ParameterRun> runs(double weight_decay) const;

 private:
  std::vector<Parameter> parameters_;
  std::vector<Slice> slices_;
  std::int64_t flat_size_ = 0;
  int groups_ = 0;
};

/// A model's numbers: flat buffers over a table.
class Parameters {
 public:
  /// @param compute    type the model computes in; bf16 keeps a copy beside the master weights.
  /// @param gradients  whether a gradient buffer is wanted (training).
  /// On a plan nothing is allocated; bytes() tells what would be.
  Parameters(const ParameterTable& table, Context& ctx, DType compute, bool gradients);

  /// Draws every parameter from (seed, name): the layout has no influence.
  void initialise(Context& ctx, std::uint64_t seed);
  /// Rewrites the compute copy from the master weights, where there is one.
  void refresh_weights(Context& ctx);
  void zero_gradients(Context& ctx);
  /// Keeps these weights once more, as products read them fastest, for linear(); from then on they
  /// must not change. Float64 has no such form and stays as it is.
  /// @param elsewhere  weights that are not in these buffers, by the first parameter of their span.
  /// @throws UserError  this processor has no such products.
  void pack(Context& ctx, std::span<const ParameterSpan> weights, WeightFormat format,
            const std::map<int, Tensor>& elsewhere = {});

  const ParameterTable& table() const { return table_; }
  DType compute_type() const { return compute_; }
  std::int64_t bytes() const { return memory_->high_water(); }

  Tensor flat_master() const { return master_; }      ///< [flat_size], statistics type
  Tensor flat_gradient() const { return gradient_; }  ///< the same; absent without gradients
  Tensor flat_weights() const { return weights_; }    ///< [flat_size], compute type

  /// What products read. Matrices of a span are stacked: [sum of rows, columns].
  Tensor weight(ParameterSpan span) const { return view(weights_, span); }
  /// x times a weight, plus a bias where there is one: as linear_forward wants it.
  LinearArgs linear(const Tensor& x, ParameterSpan weight, ParameterSpan bias = {}) const;
  /// What norms read, in statistics type.
  Tensor master(ParameterSpan span) const { return view(master_, span); }
  /// Absent when there are no gradients.
  Tensor gradient(ParameterSpan span) const;
  /// The master weights of one parameter without padded rows, for checkpoints.
  Tensor stored(const Tensor& flat, const Parameter& parameter) const;

 private:
  Tensor view(const Tensor& flat, ParameterSpan span) const;

  const ParameterTable& table_;
  DType compute_;
  std::unique_ptr<Arena> memory_;
  Tensor master_, gradient_, weights_;
  std::map<int, std::unique_ptr<const PackedWeight>> packed_;  ///< by the first of their span
};

}  // namespace octavo
