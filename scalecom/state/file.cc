#include "scalecom/state/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::state {
namespace {

using core::concat;

// A single call takes no more than about 2 GiB on Linux.
constexpr std::size_t kLargestCall = std::size_t{1} << 30;

[[noreturn]] void fail(const char* operation, const std::filesystem::path& path) {
  const std::string reason = std::strerror(errno);
  throw core::IoError(concat("[state] cannot ", operation, " '", path.string(), "': ", reason));
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

constexpr std::string_view kFreshBegin = ".scalecom-";
constexpr std::string_view kFreshEnd = ".tmp";
constexpr std::size_t kFreshDigits = 16;

std::filesystem::path fresh_name(const std::filesystem::path& folder) {
  std::random_device random;
  char digits[kFreshDigits + 1];
  std::snprintf(digits, sizeof digits, "%08x%08x", random(), random());
  return folder / concat(kFreshBegin, digits, kFreshEnd);
}

bool is_fresh_name(std::string_view name) {
  if (!name.starts_with(kFreshBegin) || !name.ends_with(kFreshEnd)) return false;
  name.remove_prefix(kFreshBegin.size());
  name.remove_suffix(kFreshEnd.size());
  return name.size() == kFreshDigits &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// O_EXCL neither follows a link nor opens what another has put there, whatever the name.
std::pair<std::filesystem::path, int> create_fresh(const std::filesystem::path& target) {
  for (int attempt = 0;; ++attempt) {
    std::filesystem::path path = fresh_name(folder_of(target));
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) return {std::move(path), descriptor};
    if (errno != EEXIST || attempt >= 16) fail("write", target);
  }
}

void write_all(int descriptor, std::span<const std::byte> bytes,
               const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const std::size_t wanted = std::min(bytes.size(), kLargestCall);
    const ssize_t put = ::write(descriptor, bytes.data(), wanted);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("write", path);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

// A rename would put a plain file in the place of a device or a pipe, or of a link to one such as
// /dev/stdout, for everybody.
void check_replaceable(const std::filesystem::path& target) {
  struct stat found {};
  if (::stat(target.c_str(), &found) != 0) return;
  if (S_ISREG(found.st_mode) || S_ISDIR(found.st_mode)) return;
  throw core::UsageError(
      concat("[state] '", target.string(), "' is no plain file, and is not replaced by one"));
}

}  // namespace

File::File(std::filesystem::path path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

File File::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK a pipe would wait here for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const std::string reason = std::strerror(errno);
    throw core::UsageError(concat("[state] cannot open '", path.string(), "': ", reason));
  }
  File file(path, descriptor);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail("read", path);
  if (!S_ISREG(status.st_mode)) {
    throw core::UsageError(concat("[state] '", path.string(), "' is not a plain file"));
  }
  return file;
}

std::int64_t File::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail("read", path_);
  return status.st_size;
}

void File::read(std::int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const std::size_t wanted = std::min(out.size(), kLargestCall);
    const ssize_t got = ::pread(descriptor_, out.data(), wanted, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path_);
    if (got == 0) {
      throw core::UsageError(
          concat("[state] '", path_.string(), "' is truncated: it ends at byte ", offset));
    }
    offset += got;
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

NewFile::NewFile(std::filesystem::path target)
    : target_(std::move(target)), temporary_([this] {
        check_replaceable(target_);
        auto [path, descriptor] = create_fresh(target_);
        return File(std::move(path), descriptor);
      }()) {}

NewFile::~NewFile() {
  if (!committed_) ::unlink(temporary_.path().c_str());
}

void NewFile::write(std::span<const std::byte> bytes) {
  write_all(temporary_.descriptor_, bytes, target_);
}

void NewFile::commit() {
  if (::fsync(temporary_.descriptor_) != 0) fail("write", target_);
  // Some file systems report a full disk only here. The descriptor is gone whatever is returned.
  if (::close(std::exchange(temporary_.descriptor_, -1)) != 0) fail("write", target_);
  if (::rename(temporary_.path().c_str(), target_.c_str()) != 0) fail("replace", target_);
  committed_ = true;
  // So that the new name outlasts a loss of power. Not every file system can; the file is in its
  // place all the same.
  const int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
}

std::vector<std::filesystem::path> temporary_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  std::error_code failure;
  std::filesystem::directory_iterator entry(folder, failure);
  for (; !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
    std::error_code gone;
    if (is_fresh_name(entry->path().filename().string()) &&
        entry->symlink_status(gone).type() == std::filesystem::file_type::regular) {
      found.push_back(entry->path());
    }
  }
  return found;
}

void append(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  const File file(path, ::open(path.c_str(), kFlags, 0666));
  if (file.descriptor_ < 0) fail("write", path);
  write_all(file.descriptor_, bytes, path);
  if (::fsync(file.descriptor_) != 0) fail("write", path);
}

}  // namespace scalecom::state
