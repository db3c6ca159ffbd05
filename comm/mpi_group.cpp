#include "comm/mpi_group.h"

#include <exception>

#include "comm/mpi_worker.h"
#include "core/error.h"

namespace octavo {

MpiGroup::MpiGroup()
    : Group(0, 1, 0),
      worker_(std::make_unique<MpiWorker>(kDefaultTimeLimit)),
      exceptions_at_birth_(std::uncaught_exceptions()) {
  rank_ = worker_->rank();
  size_ = worker_->size();
  local_rank_ = worker_->local_rank();
}

MpiGroup::~MpiGroup() {
  // With peers that wait for us, finalising after an exception would hang: we leave without it.
  const bool failing = std::uncaught_exceptions() > exceptions_at_birth_;
  worker_->leave(failing && size_ > 1);
}

void MpiGroup::broadcast(std::span<std::byte> bytes, int root) {
  expect(root >= 0 && root < size_, "Group::broadcast: no such rank");
  wait(worker_->submit({.kind = MpiWorker::Kind::broadcast,
                        .data = bytes.data(),
                        .count = std::ssize(bytes),
                        .type = DType::u8,
                        .root = root}));
}

void MpiGroup::barrier() {
  wait(worker_->submit(
      {.kind = MpiWorker::Kind::barrier, .data = nullptr, .count = 0, .type = DType::u8}));
}

Ticket MpiGroup::start_all_reduce(const Tensor& slice) {
  expect_slice(slice);
  return worker_->submit({.kind = MpiWorker::Kind::reduce,
                          .data = slice.raw(),
                          .count = slice.elements(),
                          .type = slice.dtype()});
}

void MpiGroup::wait(Ticket ticket) {
  worker_->wait(ticket);
}

void MpiGroup::set_time_limit(double seconds) {
  worker_->set_time_limit(seconds);
}

void MpiGroup::end_all(const std::string& message, int exit_code) {
  worker_->end_all(message, exit_code);
}

void MpiGroup::reduce(void* values, std::int64_t count, DType type) {
  wait(worker_->submit(
      {.kind = MpiWorker::Kind::reduce, .data = values, .count = count, .type = type}));
}

void MpiGroup::gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) {
  expect(all.size() == mine.size() * static_cast<std::size_t>(size_),
         "Group::all_gather: one entry per rank");
  wait(worker_->submit({.kind = MpiWorker::Kind::gather,
                        .data = all.data(),
                        .count = std::ssize(mine),
                        .type = DType::u8,
                        .mine = mine.data()}));
}

}  // namespace octavo
