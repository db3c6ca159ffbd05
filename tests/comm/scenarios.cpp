#include "tests/comm/scenarios.h"

namespace octavo {

const std::map<std::string, std::function<void(double)>>& scenarios() {
  static const std::map<std::string, std::function<void(double)>> all = {
      {"collectives", check_collectives},
      {"sum_buckets", sum_buckets},
      {"hide_sums", hide_sums},
      {"allocate_nothing", allocate_nothing},
      {"exception", fail_by_exception},
      {"everywhere", fail_everywhere},
      {"without_catching", fail_without_catching},
      {"exit", fail_by_exit},
      {"kill", fail_by_kill},
      {"stop", fail_by_stop},
      {"absence", fail_by_absence},
      {"disagreement", fail_by_disagreement},
      {"amid_sums", fail_amid_sums},
      {"stop_politely", stop_politely},
      {"never_stop", never_stop},
      {"start_slowly", start_slowly},
      {"die_when_asked", die_when_asked},
  };
  return all;
}

}  // namespace octavo
