#include "comm/mpi_alarm.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <type_traits>

namespace octavo {

static_assert(std::is_trivially_copyable_v<Alarm>, "alarms travel as bytes");

namespace {
constexpr int kTag = 1;
}

void Alarm::set_text(std::string_view message) {
  text.fill('\0');
  std::copy_n(message.data(), std::min(message.size(), text.size() - 1), text.data());
}

MpiAlarms::MpiAlarms(MPI_Comm communicator) : communicator_(communicator) {
  check_mpi(MPI_Comm_rank(communicator, &rank_), "asking for the rank");
  check_mpi(MPI_Comm_size(communicator, &size_), "asking for the number of ranks");
  sending_.assign(static_cast<std::size_t>(size_), MPI_REQUEST_NULL);
  check_mpi(MPI_Irecv(&incoming_, sizeof incoming_, MPI_BYTE, MPI_ANY_SOURCE, kTag, communicator_,
                      &listening_),
            "listening for alarms");
}

std::optional<Alarm> MpiAlarms::poll() {
  int arrived = 0;
  check_mpi(MPI_Test(&listening_, &arrived, MPI_STATUS_IGNORE), "listening for alarms");
  if (arrived == 0) return std::nullopt;
  const Alarm alarm = incoming_;
  check_mpi(MPI_Irecv(&incoming_, sizeof incoming_, MPI_BYTE, MPI_ANY_SOURCE, kTag, communicator_,
                      &listening_),
            "listening for alarms");
  return alarm;
}

void MpiAlarms::send(const Alarm& alarm, int to) {
  outgoing_ = alarm;
  check_mpi(MPI_Isend(&outgoing_, sizeof outgoing_, MPI_BYTE, to, kTag, communicator_,
                      &sending_[static_cast<std::size_t>(to)]),
            "sending an alarm");
  flush();
}

void MpiAlarms::send_to_all(const Alarm& alarm) {
  outgoing_ = alarm;
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    check_mpi(MPI_Isend(&outgoing_, sizeof outgoing_, MPI_BYTE, r, kTag, communicator_,
                        &sending_[static_cast<std::size_t>(r)]),
              "sending an alarm");
  }
  flush();
}

void MpiAlarms::stop() {
  check_mpi(MPI_Cancel(&listening_), "ending to listen for alarms");
  check_mpi(MPI_Wait(&listening_, MPI_STATUS_IGNORE), "ending to listen for alarms");
}

void MpiAlarms::flush() {
  // A peer that is dead or stopped may never take it: the others must not wait for that.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  int done = 0;
  while (done == 0 && std::chrono::steady_clock::now() < deadline) {
    check_mpi(MPI_Testall(size_, sending_.data(), &done, MPI_STATUSES_IGNORE), "sending an alarm");
    if (done == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace octavo
