#include "trainer/report_window.h"

#include "core/error.h"

namespace octavo {

void ReportWindow::add(const StepReport& step) {
  last_ = step;
  ++updates_;
  source_tokens_ += step.source_tokens;
  target_tokens_ += step.target_tokens;
  sentences_ += step.sentences;
  if (step.finite) {
    const auto tokens = static_cast<double>(step.target_tokens);
    made_tokens_ += tokens;
    loss_ += step.loss * tokens;
    nll_ += step.nll * tokens;
    norm_ += step.norm;
  } else {
    ++skipped_;
  }
  seconds_ += step.seconds;
  data_seconds_ += step.data_seconds;
  collective_seconds_ += step.collective_seconds;
  utilised_seconds_ += step.flop_utilisation * step.seconds;
}

TrainingReport ReportWindow::report(double training_seconds) const {
  expect(!empty(), "ReportWindow: nothing to report");
  const auto rate = [&](auto count) {
    return seconds_ > 0 ? static_cast<double>(count) / seconds_ : 0.0;
  };
  const std::int64_t made = updates_ - skipped_;
  return {.update = last_.update,
          .epoch = last_.epoch,
          .seconds = training_seconds,
          .loss = made > 0 ? loss_ / made_tokens_ : last_.loss,
          .nll = made > 0 ? nll_ / made_tokens_ : last_.nll,
          .rate = last_.rate,
          .gradient_norm = made > 0 ? norm_ / static_cast<double>(made) : last_.norm,
          .updates = updates_,
          .skipped = skipped_,
          .source_tokens_per_second = rate(source_tokens_),
          .target_tokens_per_second = rate(target_tokens_),
          .sentences_per_second = rate(sentences_),
          .updates_per_second = rate(updates_),
          .data_wait = rate(data_seconds_),
          .collective_wait = rate(collective_seconds_),
          .flop_utilisation = rate(utilised_seconds_)};
}

}  // namespace octavo
