#include "comm/mpi_exchange.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/error.h"

namespace octavo {
namespace {

// What a thread does between two looks at messages that have not come. The waits grow by a quarter,
// so a message is seen late by at most a quarter of the time it took, and eight ranks on two cores
// leave the cores to those that compute.
class Backoff {
 public:
  void pause() {
    if (looks_++ < kYields) {
      sched_yield();
      return;
    }
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(pause_ * 5 / 4, kLongest);
  }
  void reset() { *this = Backoff(); }

 private:
  static constexpr int kYields = 20;
  static constexpr std::chrono::nanoseconds kLongest{1'000'000};
  int looks_ = 0;
  std::chrono::nanoseconds pause_{10'000};
};

// A block stays in the first-level cache while the ranks' addends pass.
template <typename T>
void add_in_rank_order(std::byte* values, std::int64_t count, const std::byte* addends,
                       std::int64_t stride, int rank, int size) {
  constexpr std::int64_t kBlock = 1024;
  std::array<T, kBlock> total;
  const auto addend = [&](int r, std::int64_t first) {
    return reinterpret_cast<const T*>(r == rank ? values : addends + r * stride) + first;
  };
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t n = std::min(kBlock, count - first);
    std::copy_n(addend(0, first), n, total.data());
    for (int r = 1; r < size; ++r) {
      const T* x = addend(r, first);
      for (std::int64_t i = 0; i < n; ++i) total[static_cast<std::size_t>(i)] += x[i];
    }
    std::copy_n(total.data(), n, reinterpret_cast<T*>(values) + first);
  }
}

constexpr std::int64_t kLargestMessage = 1 << 30;  // MPI counts are int

}  // namespace

void check_mpi(int status, const char* doing) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> reason{};
  int length = 0;
  MPI_Error_string(status, reason.data(), &length);
  throw DeviceError(fmt::format("MPI, {}: {}", doing, reason.data()));
}

MpiExchange::MpiExchange(MPI_Comm communicator, std::function<void()> while_waiting)
    : communicator_(communicator), while_waiting_(std::move(while_waiting)) {
  check_mpi(MPI_Comm_rank(communicator, &rank_), "asking for the rank");
  check_mpi(MPI_Comm_size(communicator, &size_), "asking for the number of ranks");
  int* bound = nullptr;
  int known = 0;
  check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&bound), &known),
            "asking for the largest tag");
  largest_tag_ = known != 0 ? *bound : 32767;
  requests_.reserve(4 * static_cast<std::size_t>(size_));
  finished_.resize(4 * static_cast<std::size_t>(size_));
  scratch_.resize(static_cast<std::size_t>(size_ * kPartBytes));
}

void MpiExchange::all_reduce(void* values, std::int64_t count, DType type) {
  const std::int64_t bytes = count * static_cast<std::int64_t>(bytes_of(type));
  choose_tag(1 + static_cast<int>(type), bytes);
  auto* start = static_cast<std::byte*>(values);
  if (bytes <= kSmallBytes) {
    reduce_small(start, count, type);
  } else {
    reduce_large(start, count, type);
  }
}

void MpiExchange::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  choose_tag(21, std::ssize(mine));
  const std::int64_t bytes = std::ssize(mine);
  std::copy(mine.begin(), mine.end(), all.begin() + rank_ * bytes);
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    receive(all.data() + r * bytes, bytes, r);
    send(mine.data(), bytes, r);
  }
  wait_for_messages();
}

void MpiExchange::broadcast(std::span<std::byte> bytes, int root) {
  choose_tag(22 + root, std::ssize(bytes));
  std::int64_t done = 0;
  do {  // an empty span still makes everybody meet
    const std::int64_t count = std::min(std::ssize(bytes) - done, kLargestMessage);
    for (int r = 0; r < size_; ++r)
      if (rank_ == root && r != root) send(bytes.data() + done, count, r);
    if (rank_ != root) receive(bytes.data() + done, count, root);
    wait_for_messages();
    done += count;
  } while (done < std::ssize(bytes));
}

void MpiExchange::barrier() {
  choose_tag(20, 0);
  reduce_small(scratch_.data(), 0, DType::u8);
}

void MpiExchange::choose_tag(int kind, std::int64_t bytes) {
  ++sequence_;
  const std::uint64_t mixed =
      (static_cast<std::uint64_t>(bytes) * 64 + static_cast<std::uint64_t>(kind)) *
      0x9e3779b97f4a7c15u;
  const auto high = static_cast<std::uint32_t>(mixed >> 40) << 8;
  tag_ = static_cast<int>((high | (sequence_ & 0xffu)) & static_cast<std::uint32_t>(largest_tag_));
}

void MpiExchange::send(const void* bytes, std::int64_t count, int to) {
  check_mpi(MPI_Isend(bytes, static_cast<int>(count), MPI_BYTE, to, tag_, communicator_,
                      &requests_.emplace_back()),
            "sending");
}

void MpiExchange::receive(void* bytes, std::int64_t count, int from) {
  check_mpi(MPI_Irecv(bytes, static_cast<int>(count), MPI_BYTE, from, tag_, communicator_,
                      &requests_.emplace_back()),
            "receiving");
}

void MpiExchange::wait_for_messages() {
  Backoff backoff;
  for (std::size_t open = requests_.size(); open > 0;) {
    int finished = 0;
    check_mpi(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &finished,
                           finished_.data(), MPI_STATUSES_IGNORE),
              "waiting for messages");
    if (finished > 0) {
      open -= static_cast<std::size_t>(finished);
      backoff.reset();
      continue;
    }
    while_waiting_();
    backoff.pause();
  }
  requests_.clear();
}

void MpiExchange::reduce_small(std::byte* values, std::int64_t count, DType type) {
  const std::int64_t bytes = count * static_cast<std::int64_t>(bytes_of(type));
  if (rank_ != 0) {
    send(values, bytes, 0);
    receive(scratch_.data(), bytes, 0);
    wait_for_messages();
    std::copy_n(scratch_.data(), bytes, values);
    return;
  }
  for (int r = 1; r < size_; ++r) receive(scratch_.data() + r * kPartBytes, bytes, r);
  wait_for_messages();
  add_up(values, count, type);
  for (int r = 1; r < size_; ++r) send(values, bytes, r);
  wait_for_messages();
}

// The results of one piece travel together with the addends of the next: one round of waiting each.
void MpiExchange::reduce_large(std::byte* values, std::int64_t count, DType type) {
  const auto width = static_cast<std::int64_t>(bytes_of(type));
  const std::int64_t piece = size_ * kPartBytes / width;
  const auto send_addends = [&](std::int64_t begin) {
    const Range all{begin, std::min(piece, count - begin)};
    const Range mine = part(all, rank_);
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      const Range theirs = part(all, r);
      receive(scratch_.data() + r * kPartBytes, mine.count * width, r);
      send(values + theirs.begin * width, theirs.count * width, r);
    }
  };
  const auto send_results = [&](std::int64_t begin) {
    const Range all{begin, std::min(piece, count - begin)};
    const Range mine = part(all, rank_);
    add_up(values + mine.begin * width, mine.count, type);
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      const Range theirs = part(all, r);
      receive(values + theirs.begin * width, theirs.count * width, r);
      send(values + mine.begin * width, mine.count * width, r);
    }
  };
  send_addends(0);
  for (std::int64_t begin = 0; begin < count; begin += piece) {
    wait_for_messages();
    send_results(begin);
    if (begin + piece < count) send_addends(begin + piece);
  }
  wait_for_messages();
}

MpiExchange::Range MpiExchange::part(const Range& piece, int owner) const {
  const std::int64_t begin = piece.count * owner / size_;
  return {piece.begin + begin, piece.count * (owner + 1) / size_ - begin};
}

void MpiExchange::add_up(std::byte* values, std::int64_t count, DType type) const {
  const auto add = [&]<typename T>(T) {
    add_in_rank_order<T>(values, count, scratch_.data(), kPartBytes, rank_, size_);
  };
  switch (type) {
    case DType::f32:
      return add(float{});
    case DType::f64:
      return add(double{});
    case DType::i64:
      return add(std::int64_t{});
    default:
      expect(count == 0, "MpiExchange: sums are f32, f64 or i64");
  }
}

}  // namespace octavo
