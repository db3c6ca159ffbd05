// An update takes no memory: every malloc of this process is counted while the trainer trains.
#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "comm/group.h"
#include "comm/signals.h"
#include "configs/experiment.h"
#include "tests/end_to_end/experiment_folder.h"
#include "trainer/trainer.h"
#include "trainer/translation_task.h"

namespace {

/// Of this thread, while it counts.
struct Count {
  bool on = false;
  long ours = 0;     ///< blocks that code of ours, or of C++'s library for us, asked for
  long library = 0;  ///< blocks that the product library asked for, for itself
  std::size_t largest_of_library = 0;
};
thread_local Count count;

/// Whether the product library is among the callers.
bool library_calls() {
  void* frames[64];
  const int depth = backtrace(frames, 64);
  for (int i = 0; i < depth; ++i) {
    Dl_info info;
    if (dladdr(frames[i], &info) != 0 && std::strstr(info.dli_fname, "dnnl") != nullptr)
      return true;
  }
  return false;
}

[[maybe_unused]] void note(std::size_t size) {
  if (!count.on) return;
  count.on = false;  // looking may take memory itself
  if (library_calls()) {
    ++count.library;
    count.largest_of_library = std::max(count.largest_of_library, size);
  } else {
    ++count.ours;
  }
  count.on = true;
}

}  // namespace

// AddressSanitizer has a malloc of its own.
#ifndef __SANITIZE_ADDRESS__
// glibc's own names behind the functions that are replaced here for the whole process.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-inconsistent-declaration-parameter-name)
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  note(size);
  return __libc_malloc(size);
}
void* calloc(std::size_t blocks, std::size_t size) {
  note(blocks * size);
  return __libc_calloc(blocks, size);
}
void* realloc(void* block, std::size_t size) {
  note(size);
  return __libc_realloc(block, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  note(size);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** block, std::size_t alignment, std::size_t size) {
  note(size);
  *block = __libc_memalign(alignment, size);
  return *block == nullptr ? ENOMEM : 0;
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-inconsistent-declaration-parameter-name)
#endif

namespace octavo {
namespace {

/// Counts from the end of update `from` to the end of update `to`, without what it does itself.
class CountingObserver final : public TrainingObserver {
 public:
  CountingObserver(std::int64_t from, std::int64_t to) : from_(from), to_(to) {}
  void started(const TrainingState&, const MemoryPlan&) override {}
  void stepped(const StepReport& report, const TrainingState&) override {
    count.on = report.update >= from_ && report.update < to_;
  }
  void validated(const ValidationResult&, const TrainingState&, bool) override {}
  void saved(const std::filesystem::path&) override { count.on = false; }

 private:
  std::int64_t from_, to_;
};

// The first hundred updates meet every shape of micro-batch: there are three.
constexpr std::int64_t kFrom = 100, kTo = 150;

Count count_updates(const testkit::ExperimentFolder& folder, const std::string& precision) {
  const Experiment experiment = read_experiment(
      folder.config(),
      std::vector<std::string>{"trainer.output=" + folder.path("run_" + precision),
                               "trainer.precision=" + precision, "trainer.max_tokens=192",
                               "trainer.max_updates=150", "trainer.average_decay=0.9"});
  SingleGroup group;
  const StopSignals signals;
  TranslationTask task({.data = experiment.data,
                        .model = experiment.model,
                        .trainer = experiment.trainer,
                        .search = experiment.translate,
                        .bleu = experiment.bleu,
                        .threads = 1},
                       group);
  CountingObserver observer(kFrom, kTo);
  Trainer trainer({.config = experiment.trainer,
                   .bucket_bytes = 100000,
                   .model_width = experiment.model.width,
                   .files = {},
                   .threads = 1,
                   .ranks_on_host = 1},
                  task, group, signals, observer);
  count = {};
  trainer.run();
  return count;
}

#ifdef __SANITIZE_ADDRESS__
constexpr bool kCounts = false;
#else
constexpr bool kCounts = true;
#endif

TEST(Allocation, AnUpdateTakesNoMemory) {
  if (!kCounts) GTEST_SKIP() << "AddressSanitizer replaces malloc itself";
  void* frame[1];
  backtrace(frame, 1);  // loads what it needs
  const testkit::ExperimentFolder folder(40);
  for (const char* precision : {"float32", "bf16"}) {
    const Count found = count_updates(folder, precision);
    EXPECT_EQ(found.ours, 0) << precision;
    // The product library makes a list of its arguments at each call, and its kernel for rows that
    // are apart takes a copy of a tile; both are given back before the call returns.
    EXPECT_LE(found.largest_of_library, std::size_t{1} << 20) << precision;
    RecordProperty(std::string("library_blocks_") + precision, std::to_string(found.library));
  }
}

TEST(Allocation, TheCountSeesAnAllocation) {
  if (!kCounts) GTEST_SKIP() << "AddressSanitizer replaces malloc itself";
  count = {.on = true};
  ::operator delete(::operator new(8));  // called as functions: never left out
  void* volatile block = std::malloc(8);
  std::free(block);
  count.on = false;
  EXPECT_EQ(count.ours, 2);
}

}  // namespace
}  // namespace octavo
