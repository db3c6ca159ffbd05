#include "core/map_failure.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <mutex>

#include "core/error.h"

namespace octavo {
namespace {

/// One file. `begin` is written last and cleared first: the handler may look at any time.
struct Mapping {
  std::atomic<const std::byte*> begin = nullptr;
  std::size_t size = 0;
  std::array<char, 1024> line{};
};

std::array<Mapping, 64> mappings;
std::mutex writing;
struct sigaction former {};

void say_on_standard_error(const char* line) {
  if (::write(STDERR_FILENO, line, std::strlen(line)) < 0) return;  // nobody is left to be told
}

std::atomic<void (*)(const char*)> speaker = say_on_standard_error;
static_assert(std::atomic<void (*)(const char*)>::is_always_lock_free);

void on_bus_error(int, siginfo_t* info, void*) {
  const auto* address = static_cast<const std::byte*>(info->si_addr);
  for (const Mapping& m : mappings) {
    const std::byte* begin = m.begin.load();
    if (begin == nullptr || address < begin || address >= begin + m.size) continue;
    speaker.load()(m.line.data());
    ::_exit(2);
  }
  // Not ours: the instruction is tried again and fails in the old way.
  ::sigaction(SIGBUS, &former, nullptr);
}

void install() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  expect(::sigaction(SIGBUS, &action, &former) == 0, "map_failure: sigaction failed");
}

}  // namespace

void note_mapping(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  static std::once_flag installed;
  std::call_once(installed, install);
  const std::lock_guard lock(writing);
  for (Mapping& m : mappings) {
    if (m.begin.load() != nullptr) continue;
    m.size = bytes.size();
    const auto end = fmt::format_to_n(
        m.line.data(), m.line.size() - 1,
        "error: the file was cut short, or its disk failed, while it was read: {}. Bring it back "
        "and start again.\n",
        path.string());
    *end.out = '\0';
    m.begin = bytes.data();
    return;
  }
}

void forget_mapping(std::span<const std::byte> bytes) {
  const std::lock_guard lock(writing);
  for (Mapping& m : mappings)
    if (m.begin.load() == bytes.data()) m.begin = nullptr;
}

void set_map_failure_speaker(void (*new_speaker)(const char* line)) {
  speaker = new_speaker;
}

}  // namespace octavo
