#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "comm/mpi.h"

namespace octavo {

/// What one rank tells another when the run must end.
struct Alarm {
  enum class Kind : std::int32_t {
    failed,   ///< to rank 0: say this for me, then end everybody
    overdue,  ///< say what your last collective was, then leave
    leave,    ///< somebody has spoken: leave in silence
  };
  Kind kind = Kind::leave;
  std::int32_t exit_code = 1;
  std::int32_t origin = 0;        ///< the rank it is about
  std::array<char, 2036> text{};  ///< zero-terminated, for `failed`

  void set_text(std::string_view message);
};

/// Sends and receives alarms beside the collectives, on a communicator of its own. For one thread.
class MpiAlarms {
 public:
  /// Begins to listen. @param communicator  ours alone; not owned.
  explicit MpiAlarms(MPI_Comm communicator);
  MpiAlarms(const MpiAlarms&) = delete;
  MpiAlarms& operator=(const MpiAlarms&) = delete;

  /// The next alarm that has arrived, if any. Never waits.
  std::optional<Alarm> poll();
  /// Sends to one rank, or to all others, and waits until it is under way, half a second at most.
  void send(const Alarm& alarm, int to);
  void send_to_all(const Alarm& alarm);
  /// Stops listening; call before MPI_Finalize.
  void stop();

 private:
  void flush();

  MPI_Comm communicator_;
  int rank_ = 0, size_ = 1;
  Alarm incoming_, outgoing_;
  MPI_Request listening_ = MPI_REQUEST_NULL;
  std::vector<MPI_Request> sending_;
};

}  // namespace octavo
