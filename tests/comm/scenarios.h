#pragma once

#include <functional>
#include <map>
#include <string>

namespace octavo {

/// Name of each scenario and what every rank of it does; the argument is the scenario's own.
const std::map<std::string, std::function<void(double)>>& scenarios();

void check_sums(double);
void check_control_plane(double ranks);
void check_asynchronous_sums(double);

}  // namespace octavo
