// octavo train, but for one fault: a bucket of gradients is left out of every update's sum. What
// compares trainings on one and on more ranks must notice.
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/group.h"
#include "core/error.h"
#include "core/log.h"
#include "launch/command.h"
#include "launch/commands.h"

namespace octavo {
namespace {

/// Hands everything on to `inner`, except for the sum that is started second in every update.
class ForgetfulGroup final : public Group {
 public:
  explicit ForgetfulGroup(std::unique_ptr<Group> inner)
      : Group(inner->rank(), inner->size(), inner->local_rank()), inner_(std::move(inner)) {}

  bool alone() const override { return inner_->alone(); }
  void broadcast(std::span<std::byte> bytes, int root) override { inner_->broadcast(bytes, root); }
  void barrier() override { inner_->barrier(); }
  Ticket start_all_reduce(const Tensor& slice) override {
    return ++started_ == 2 ? kForgotten : inner_->start_all_reduce(slice);
  }
  void wait(Ticket ticket) override {
    if (ticket != kForgotten) inner_->wait(ticket);
  }
  void set_time_limit(double seconds) override { inner_->set_time_limit(seconds); }
  [[noreturn]] void end_all(const std::string& message, int exit_code) override {
    inner_->end_all(message, exit_code);
    std::abort();  // not reached, which GCC does not see
  }

 protected:
  // The control values that end every update come this way.
  void reduce(void* values, std::int64_t count, DType type) override {
    started_ = 0;
    const auto n = static_cast<std::size_t>(count);
    if (type == DType::f32) {
      inner_->all_reduce_sum(std::span(static_cast<float*>(values), n));
    } else if (type == DType::f64) {
      inner_->all_reduce_sum(std::span(static_cast<double*>(values), n));
    } else {
      inner_->all_reduce_sum(std::span(static_cast<std::int64_t*>(values), n));
    }
  }
  void gather_bytes(std::span<const std::byte>, std::span<std::byte>) override {
    throw InternalError("training gathers nothing");
  }

 private:
  static constexpr Ticket kForgotten = -1;

  std::unique_ptr<Group> inner_;
  int started_ = 0;
};

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  using namespace octavo;
  set_up_log(0);
  return exit_code_of([&] {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const std::vector<Command> commands{
        train_command([] { return std::make_unique<ForgetfulGroup>(join_ranks()); })};
    return run_command_line(arguments, commands);
  });
}
