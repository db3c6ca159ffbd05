#include "model/ops/embedding.h"

#include "core/dispatch.h"
#include "model/ops/dropout.h"
#include "model/ops/keyed_sum.h"

namespace octavo {

template <typename T>
void embedding_forward(OnCpu, Context& ctx, const EmbeddingArgs& in, const Tensor& y);
template <typename T>
void add_by_key(OnCpu, Context& ctx, const EmbeddingArgs& in, const Tensor& dy,
                const KeyedSum& sum);

namespace {

void expect_tokens(const EmbeddingArgs& in) {
  expect_shape(in.tokens.ids, {in.tokens.rows}, "ids");
  expect_shape(in.tokens.positions, {in.tokens.rows}, "positions");
  expect_dropout(in.dropout, in.tokens.rows);
}

// Takes the scratch that sorting by key needs.
void add_by_key(Context& ctx, const EmbeddingArgs& in, const Tensor& dy, KeyedSum sum) {
  const ArenaScope scratch(ctx.scratch());
  sum.first = ctx.scratch().allocate({sum.sums.dim(0) + 1}, DType::i32);
  sum.order = ctx.scratch().allocate({in.tokens.tokens}, DType::i32);
  dispatch(ctx, dy.dtype(), [&]<typename T>(auto on) { add_by_key<T>(on, ctx, in, dy, sum); });
}

}  // namespace

void embedding_forward(Context& ctx, const EmbeddingArgs& in, Tensor y) {
  const std::int64_t D = in.table.dim(1), tokens = in.tokens.tokens;
  const DType type = in.table.dtype();
  expect_tokens(in);
  expect(in.table.contiguous(), "embedding: the table's rows are apart");
  expect_shape(y, {in.tokens.rows, D}, "y");
  expect_dtype(y, type, "y");
  expect(y.contiguous(), "embedding: y's rows are apart");
  if (in.positions.present()) {
    expect_shape(in.positions, {in.positions.dim(0), D}, "positions");
    expect_dtype(in.positions, statistics_type(type), "positions");
  }
  const std::int64_t row = D * static_cast<std::int64_t>(bytes_of(type));
  const std::int64_t position_row =
      in.positions.present() ? D * static_cast<std::int64_t>(bytes_of(in.positions.dtype())) : 0;
  const OpScope scope(ctx, {.name = "embedding_forward",
                            .flops = 2 * tokens * D,
                            .bytes = tokens * (row + position_row) + y.bytes()});
  dispatch(ctx, type, [&]<typename T>(auto on) { embedding_forward<T>(on, ctx, in, y); });
}

void embedding_backward(Context& ctx, const EmbeddingArgs& in, const Tensor& dy, Tensor dtable,
                        Tensor dpositions) {
  const std::int64_t D = in.table.dim(1);
  const DType statistics = statistics_type(dy.dtype());
  expect_tokens(in);
  expect_shape(dy, {in.tokens.rows, D}, "dy");
  expect(dy.contiguous(), "embedding: dy's rows are apart");
  std::int64_t outputs = 0;
  for (const auto& [t, like, name] :
       {std::tuple{dtable, in.table, "dtable"}, {dpositions, in.positions, "dpositions"}}) {
    if (!t.present()) continue;
    expect_shape(t, {like.dim(0), D}, name);
    expect_dtype(t, statistics, name);
    ++outputs;
  }
  const std::int64_t elements = in.tokens.tokens * D;
  const auto sum_bytes = static_cast<std::int64_t>(bytes_of(statistics));
  const OpScope scope(ctx, {.name = "embedding_backward",
                            .flops = outputs * 2 * elements,
                            .bytes = outputs * (dy.bytes() + 2 * elements * sum_bytes)});
  if (dtable.present()) {
    add_by_key(
        ctx, in, dy,
        {.keys = in.tokens.ids, .scale = in.scale, .sums = dtable, .first = {}, .order = {}});
  }
  if (dpositions.present()) {
    add_by_key(
        ctx, in, dy,
        {.keys = in.tokens.positions, .scale = 1, .sums = dpositions, .first = {}, .order = {}});
  }
}

}  // namespace octavo
