#include "model/parameters.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/parallel.h"
#include "core/philox.h"
#include "core/token_batch.h"
#include "model/ops/elementwise.h"

namespace octavo {

int ParameterTable::begin_group() {
  return groups_++;
}

ParameterSpan ParameterTable::add_matrix(std::string name, std::int64_t rows, std::int64_t columns,
                                         Init init, std::int64_t padded_rows) {
  expect(groups_ > 0, "ParameterTable: begin_group() first");
  parameters_.push_back({.name = std::move(name),
                         .shape = {rows, columns},
                         .padded_rows = std::max(rows, padded_rows),
                         .init = init,
                         .decay = true,
                         .group = groups_ - 1});
  return {.first = static_cast<int>(parameters_.size()) - 1};
}

ParameterSpan ParameterTable::add_vector(std::string name, std::int64_t size, Init init) {
  expect(groups_ > 0, "ParameterTable: begin_group() first");
  parameters_.push_back({.name = std::move(name),
                         .shape = {size},
                         .padded_rows = size,
                         .init = init,
                         .decay = false,
                         .group = groups_ - 1});
  return {.first = static_cast<int>(parameters_.size()) - 1};
}

ParameterSpan ParameterTable::add_packed_matrix(const std::vector<std::string>& names,
                                                std::int64_t rows, std::int64_t columns,
                                                Init init) {
  const auto first = static_cast<int>(parameters_.size());
  for (const std::string& name : names) {
    add_matrix(name, rows, columns, init);
    parameters_.back().stacked = static_cast<int>(parameters_.size()) - 1 > first;
  }
  return {.first = first, .count = static_cast<int>(names.size())};
}

ParameterSpan ParameterTable::add_packed_vector(const std::vector<std::string>& names,
                                                std::int64_t size, Init init) {
  const auto first = static_cast<int>(parameters_.size());
  for (const std::string& name : names) {
    add_vector(name, size, init);
    parameters_.back().stacked = static_cast<int>(parameters_.size()) - 1 > first;
  }
  return {.first = first, .count = static_cast<int>(names.size())};
}

void ParameterTable::seal() {
  expect(flat_size_ == 0, "ParameterTable::seal: sealed twice");
  slices_.resize(static_cast<std::size_t>(groups_));
  for (int group = groups_ - 1; group >= 0; --group) {
    const std::int64_t begin = flat_size_;
    for (Parameter& p : parameters_) {
      if (p.group != group) continue;
      if (!p.stacked) flat_size_ = round_up(flat_size_, kAlignment);
      p.offset = flat_size_;
      flat_size_ += p.padded_size();
    }
    flat_size_ = round_up(flat_size_, kAlignment);
    slices_[static_cast<std::size_t>(group)] = {begin, flat_size_};
  }
}

std::int64_t ParameterTable::count() const {
  std::int64_t sum = 0;
  for (const Parameter& p : parameters_) sum += p.shape[0] * p.columns();
  return sum;
}

ParameterTable::Slice ParameterTable::group_slice(int group) const {
  expect(group >= 0 && group < static_cast<int>(slices_.size()), "ParameterTable: no such group");
  return slices_[static_cast<std::size_t>(group)];
}

std::vector<ParameterRun> ParameterTable::runs(double weight_decay) const {
  std::vector<const Parameter*> sorted;
  for (const Parameter& p : parameters_) sorted.push_back(&p);
  std::sort(sorted.begin(), sorted.end(),
            [](const Parameter* a, const Parameter* b) { return a->offset < b->offset; });
  std::vector<ParameterRun> runs;
  for (const Parameter* p : sorted) {
    const double decay = p->decay ? weight_decay : 0.0;
    if (!runs.empty() && runs.back().weight_decay == decay) {
      runs.back().end = p->offset + p->padded_size();  // gaps hold zeros, which stay zero
    } else {
      runs.push_back(
          {.begin = p->offset, .end = p->offset + p->padded_size(), .weight_decay = decay});
    }
  }
  return runs;
}

Parameters::Parameters(const ParameterTable& table, Context& ctx, DType compute, bool gradients)
    : table_(table), compute_(compute) {
  const DType statistics = statistics_type(compute);
  const std::int64_t size = table.flat_size();
  const auto allocate = [&](Arena& arena) {
    master_ = arena.allocate({size}, statistics);
    if (gradients) gradient_ = arena.allocate({size}, statistics);
    weights_ = compute == statistics ? master_ : arena.allocate({size}, compute);
  };
  memory_ = std::make_unique<Arena>();
  allocate(*memory_);
  if (ctx.device() == Device::plan) return;
  memory_ = std::make_unique<Arena>(memory_->high_water());
  allocate(*memory_);
}

namespace {

template <typename T>
void draw(const Parameter& p, std::uint64_t seed, T* out) {
  RandomStream random(mix(seed, XXH3_64bits(p.name.data(), p.name.size())));
  const std::int64_t rows = p.shape[0], columns = p.columns();
  const double bound = std::sqrt(6.0 / static_cast<double>(rows + columns));
  const double deviation = 1.0 / std::sqrt(static_cast<double>(columns));
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    switch (p.init) {
      case Init::xavier:
        out[i] = static_cast<T>((2.0 * random.uniform() - 1.0) * bound);
        break;
      case Init::embedding:
        out[i] = static_cast<T>(random.normal() * deviation);
        break;
      case Init::zeros:
        out[i] = T(0);
        break;
      case Init::ones:
        out[i] = T(1);
        break;
    }
  }
}

}  // namespace

void Parameters::initialise(Context& ctx, std::uint64_t seed) {
  if (ctx.device() == Device::plan) return;
  zero(ctx, master_);
  for (const Parameter& p : table_.parameters()) {
    if (master_.dtype() == DType::f64) {
      draw(p, seed, master_.data<double>() + p.offset);
    } else {
      draw(p, seed, master_.data<float>() + p.offset);
    }
  }
  refresh_weights(ctx);
}

void Parameters::refresh_weights(Context& ctx) {
  if (weights_.dtype() != master_.dtype()) convert(ctx, master_, weights_);
}

void Parameters::zero_gradients(Context& ctx) {
  zero(ctx, gradient_);
}

void Parameters::pack(Context& ctx, std::span<const ParameterSpan> weights, WeightFormat format,
                      const std::map<int, Tensor>& elsewhere) {
  if (compute_ == DType::f64) return;
  std::vector<std::unique_ptr<const PackedWeight>> packed(weights.size());
  parallel_tasks(ctx, static_cast<std::int64_t>(weights.size()), [&](std::int64_t task) {
    const auto i = static_cast<std::size_t>(task);
    const auto other = elsewhere.find(weights[i].first);
    const Tensor from = other == elsewhere.end() ? weight(weights[i]) : other->second;
    packed[i] = std::make_unique<const PackedWeight>(ctx, from, format);
  });
  for (std::size_t i = 0; i < weights.size(); ++i) packed_[weights[i].first] = std::move(packed[i]);
}

LinearArgs Parameters::linear(const Tensor& x, ParameterSpan weight, ParameterSpan bias) const {
  const auto packed = packed_.find(weight.first);
  return {.x = x,
          .weight = this->weight(weight),
          .bias = bias.first < 0 ? Tensor() : this->weight(bias),
          .packed = packed == packed_.end() ? nullptr : packed->second.get()};
}

Tensor Parameters::gradient(ParameterSpan span) const {
  return gradient_.present() ? view(gradient_, span) : Tensor();
}

Tensor Parameters::view(const Tensor& flat, ParameterSpan span) const {
  const Parameter& first = table_.parameters()[static_cast<std::size_t>(span.first)];
  const Tensor part = flat.rows(first.offset, first.padded_size() * span.count);
  if (first.shape.size() == 1) return part;
  return part.reshaped({first.padded_rows * span.count, first.columns()});
}

Tensor Parameters::stored(const Tensor& flat, const Parameter& p) const {
  const Tensor part = flat.rows(p.offset, p.shape[0] * p.columns());
  return p.shape.size() == 1 ? part : part.reshaped({p.shape[0], p.shape[1]});
}

}  // namespace octavo
