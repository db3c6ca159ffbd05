#include "tests/comm/scenarios.h"

namespace octavo {

const std::map<std::string, std::function<void(double)>>& scenarios() {
  static const std::map<std::string, std::function<void(double)>> all = {
      {"sums", check_sums},
      {"control_plane", check_control_plane},
      {"asynchronous_sums", check_asynchronous_sums},
  };
  return all;
}

}  // namespace octavo
