#pragma once

#include <functional>
#include <map>
#include <string>

namespace octavo {

/// Name of each scenario and what every rank of it does; the argument is the scenario's own.
const std::map<std::string, std::function<void(double)>>& scenarios();

void check_collectives(double ranks);
void sum_buckets(double);
void hide_sums(double);
void allocate_nothing(double);
void fail_by_exception(double culprit);
void fail_everywhere(double);
void fail_without_catching(double);
void fail_by_exit(double culprit);
void fail_by_kill(double culprit);
void fail_by_stop(double culprit);
void fail_by_absence(double culprit);
void fail_by_disagreement(double);
void fail_amid_sums(double culprit);
void stop_politely(double);
void never_stop(double);
void start_slowly(double);
void die_when_asked(double);

}  // namespace octavo
