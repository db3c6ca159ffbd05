// Scenarios in which one rank fails while the others wait for it.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "comm/buckets.h"
#include "comm/group.h"
#include "comm/signals.h"
#include "core/error.h"
#include "core/log.h"
#include "tests/comm/scenarios.h"

namespace octavo {
namespace {

void pause_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// As `octavo train` begins; and a few sums, so that there is a last collective to talk of.
std::unique_ptr<Group> begin(StopSignals& signals) {
  std::unique_ptr<Group> group = join_ranks();
  set_up_log(group->rank());
  signals.arm(*group);
  fmt::print("rank {} is process {}\n", group->rank(), getpid());
  std::fflush(stdout);
  for (int i = 0; i < 2; ++i) group->sum(1.0);
  return group;
}

// All ranks but `culprit` wait in a sum; it fails after a while.
void while_others_wait(int culprit, double time_limit, const std::function<void()>& fail) {
  StopSignals signals;
  const auto group = begin(signals);
  group->set_time_limit(time_limit);
  run_together(*group, [&] {
    if (group->rank() == culprit) {
      pause_for(0.3);
      fail();
    }
    std::vector<float> values(300000, 1.0f);
    group->all_reduce_sum(std::span(values));
    throw InternalError("the sum came to an end");
  });
}

constexpr double kLong = 60.0;

}  // namespace

void fail_by_exception(double culprit) {
  while_others_wait(static_cast<int>(culprit), kLong,
                    [] { throw UserError("corpus.de:17: not UTF-8"); });
}

void fail_everywhere(double) {
  StopSignals signals;
  const auto group = begin(signals);
  run_together(*group, [] { throw UserError("corpus.de:17: not UTF-8"); });
}

void fail_without_catching(double) {
  StopSignals signals;
  const auto group = begin(signals);
  if (group->rank() == 1) throw DeviceError("left without a catch");
  group->barrier();
}

void fail_by_exit(double culprit) {
  while_others_wait(static_cast<int>(culprit), kLong, [] { std::exit(3); });
}

void fail_by_kill(double culprit) {
  while_others_wait(static_cast<int>(culprit), kLong, [] { std::raise(SIGKILL); });
}

void fail_by_stop(double culprit) {
  while_others_wait(static_cast<int>(culprit), 1.0, [] { std::raise(SIGSTOP); });
}

void fail_by_absence(double culprit) {
  while_others_wait(static_cast<int>(culprit), 1.0, [] { pause_for(kLong); });
}

void fail_by_disagreement(double) {
  StopSignals signals;
  const auto group = begin(signals);
  group->set_time_limit(1.0);
  std::vector<double> values(group->rank() == 1 ? 11 : 10);
  group->all_reduce_sum(std::span(values));
}

// The exception destroys gradients whose sums have started; one rank is slow to join them.
void fail_amid_sums(double culprit) {
  StopSignals signals;
  const auto group = begin(signals);
  run_together(*group, [&] {
    constexpr std::int64_t kSlice = 400000;
    std::vector<float> flat(3 * kSlice, 1.0f);
    const GradientSlice slices[] = {{0, kSlice}, {kSlice, 2 * kSlice}, {2 * kSlice, 3 * kSlice}};
    GradientBuckets buckets(*group, Tensor(flat.data(), {3 * kSlice}, DType::f32), slices, 1);
    for (const GradientSlice& slice : slices) {
      if (group->rank() == 2) pause_for(0.3);
      buckets.ready(slice.first, slice.last);
      if (group->rank() == static_cast<int>(culprit) && slice.first == kSlice)
        throw UserError("corpus.de:17: not UTF-8");
    }
    buckets.wait();
    throw InternalError("the sum came to an end");
  });
}

void stop_politely(double) {
  StopSignals signals;
  const auto group = begin(signals);
  for (int update = 1; update < 3000; ++update) {
    pause_for(group->rank() == 1 ? 0.02 : 0.005);
    double values[] = {1.0, group->rank() * 1.0};
    if (reduce_control(*group, values, signals.requested())) {
      fmt::print("rank {} stops after update {}\n", group->rank(), update);
      std::fflush(stdout);
      return;
    }
    expect(values[0] == group->size(), "control values are summed");
  }
  throw InternalError("nobody asked to stop");
}

void never_stop(double) {
  StopSignals signals;
  const auto group = begin(signals);
  pause_for(kLong);
}

void start_slowly(double) {
  StopSignals signals;
  fmt::print("starts slowly\n");
  std::fflush(stdout);
  pause_for(2.0);
  const auto group = begin(signals);
  while (!reduce_control(*group, {}, signals.requested())) pause_for(0.01);
}

void die_when_asked(double) {
  StopSignals signals;
  const auto group = begin(signals);
  run_together(*group, [&] {
    while (group->rank() == 0 || !signals.requested()) {
      if (group->rank() == 0) group->barrier();
      pause_for(0.01);
    }
    std::raise(SIGKILL);
  });
}

}  // namespace octavo
