#include "core/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <new>
#include <utility>

#include "core/error.h"
#include "core/map_failure.h"

namespace octavo {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

/// An open file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(descriptor_); }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// open(2) for reading. @throws UserError
int open_to_read(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw UserError("cannot open " + system_reason(path.string(), errno));
  return descriptor;
}

/// Fills `buffer` as far as the file goes; returns the number of bytes, 0 at the end.
std::size_t read_some(int descriptor, char* buffer, std::size_t size,
                      const std::filesystem::path& path) {
  while (true) {
    const ssize_t n = ::read(descriptor, buffer, size);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno != EINTR) throw UserError("cannot read " + system_reason(path.string(), errno));
  }
}

/// Calls f(std::string_view) on one piece of the file after another.
template <typename F>
void for_each_piece(const std::filesystem::path& path, F&& f) {
  const Descriptor file(open_to_read(path));
  std::string buffer(kBufferBytes, '\0');
  while (const std::size_t n = read_some(file.get(), buffer.data(), buffer.size(), path))
    f(std::string_view(buffer.data(), n));
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  std::string contents;
  for_each_piece(path, [&](std::string_view piece) { contents += piece; });
  return contents;
}

HashState::HashState() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_));
}

HashState::~HashState() {
  XXH3_freeState(static_cast<XXH3_state_t*>(state_));
}

void HashState::update(std::string_view bytes) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state_), bytes.data(), bytes.size());
}

std::string HashState::digest() const {
  return fmt::format("{:016x}", XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_)));
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  // rename() would happily put a file in the place of a device such as /dev/null.
  std::error_code ignored;
  const auto status = std::filesystem::status(path_, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw UserError(fmt::format("cannot write {}: it is there already and is not an ordinary file",
                                path_.string()));
  temporary_ = path_;
  temporary_ += fmt::format(".tmp.{}", ::getpid());
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0)
    throw UserError(fmt::format("cannot write {}; does its folder exist and may you write there?",
                                system_reason(path_.string(), errno)));
}

AtomicFile::~AtomicFile() {
  discard();
}

void AtomicFile::discard() noexcept {
  if (descriptor_ < 0) return;
  ::close(std::exchange(descriptor_, -1));
  if (::unlink(temporary_.c_str()) != 0)
    spdlog::error("[core] cannot remove {}", system_reason(temporary_.string(), errno));
}

void AtomicFile::fail(int error_number) {
  discard();
  throw UserError(fmt::format("cannot write {} (after {} bytes; nothing was kept of them)",
                              system_reason(path_.string(), error_number), size_));
}

void AtomicFile::write(std::string_view bytes) {
  expect(descriptor_ >= 0, "AtomicFile::write: committed or failed before");
  hash_.update(bytes);
  size_ += static_cast<std::int64_t>(bytes.size());
  buffer_ += bytes;
  if (buffer_.size() >= kBufferBytes) flush();
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::string AtomicFile::hash() const {
  return hash_.digest();
}

void AtomicFile::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t n = ::write(descriptor_, rest.data(), rest.size());
    if (n >= 0)
      rest.remove_prefix(static_cast<std::size_t>(n));
    else if (errno != EINTR)
      fail(errno);
  }
  buffer_.clear();
}

void AtomicFile::commit() {
  expect(descriptor_ >= 0, "AtomicFile::commit: committed or failed before");
  flush();
  if (::fsync(descriptor_) != 0) fail(errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  // fsync has seen every byte, so closing has nothing left to report.
  ::close(std::exchange(descriptor_, -1));
  sync_folder(folder_of(path_));
}

void write_file(const std::filesystem::path& path, std::string_view contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw UserError("cannot open " + system_reason(folder.string(), errno));
  const Descriptor owner(descriptor);
  // Some network file systems cannot sync a folder and say EINVAL: there is nothing to do then.
  if (::fsync(descriptor) != 0 && errno != EINVAL)
    throw UserError("cannot flush " + system_reason(folder.string(), errno));
}

std::string hash_file(const std::filesystem::path& path) {
  HashState hash;
  for_each_piece(path, [&](std::string_view piece) { hash.update(piece); });
  return hash.digest();
}

std::string hash_bytes(std::string_view bytes) {
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  const Descriptor file(open_to_read(path));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    throw UserError("cannot read " + system_reason(path.string(), errno));
  if (!S_ISREG(status.st_mode))
    throw UserError(fmt::format("cannot read {}: not an ordinary file", path.string()));
  if (status.st_size == 0) return;  // mmap refuses a length of 0
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED) throw UserError("cannot map " + system_reason(path.string(), errno));
  bytes_ = {static_cast<const std::byte*>(address), size};
  note_mapping(bytes_, path);
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  forget_mapping(bytes_);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace octavo
