#include "comm/group.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "comm/mpi_group.h"
#include "core/error.h"

namespace octavo {

void Group::all_reduce_sum(std::span<float> values) {
  reduce(values.data(), std::ssize(values), DType::f32);
}

void Group::all_reduce_sum(std::span<double> values) {
  reduce(values.data(), std::ssize(values), DType::f64);
}

void Group::all_reduce_sum(std::span<std::int64_t> values) {
  reduce(values.data(), std::ssize(values), DType::i64);
}

double Group::sum(double value) {
  reduce(&value, 1, DType::f64);
  return value;
}

std::int64_t Group::sum(std::int64_t value) {
  reduce(&value, 1, DType::i64);
  return value;
}

void Group::expect_slice(const Tensor& slice) {
  expect(slice.present() && slice.contiguous(), "Group: a slice to sum must be contiguous");
  expect(slice.dtype() == DType::f32 || slice.dtype() == DType::f64,
         "Group: a slice to sum must be f32 or f64");
}

void SingleGroup::broadcast(std::span<std::byte>, int root) {
  expect(root == 0, "SingleGroup::broadcast: there is only rank 0");
}

Ticket SingleGroup::start_all_reduce(const Tensor& slice) {
  expect_slice(slice);
  return 0;
}

void SingleGroup::end_all(const std::string& message, int exit_code) {
  spdlog::error("[comm] {}", message);
  std::_Exit(exit_code);
}

void SingleGroup::gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) {
  expect(mine.size() == all.size(), "Group::all_gather: one entry per rank");
  std::copy(mine.begin(), mine.end(), all.begin());
}

std::unique_ptr<Group> join_ranks() {
  // mpirun and orted set the first, srun with PMIx the second, srun with PMI-1/2 the third.
  constexpr std::array kStarters = {"OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "PMI_SIZE"};
  const bool started = std::any_of(kStarters.begin(), kStarters.end(),
                                   [](const char* name) { return std::getenv(name) != nullptr; });
  if (started) return std::make_unique<MpiGroup>();
  return std::make_unique<SingleGroup>();
}

void run_together(Group& group, const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& e) {
    if (group.alone()) throw;
    const Ending ending = ending_of(e);
    group.end_all(ending.message, ending.exit_code);
  }
}

}  // namespace octavo
