#include "train/runs/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace train::runs {

std::optional<RunLock> RunLock::take(const std::filesystem::path& run) {
  std::error_code unwritable;  // who writes to the folder will say so
  std::filesystem::create_directories(run, unwritable);
  // To be written, although nothing is: NFS locks no file that is open for reading.
  const int file =
      ::open((run / kFile).c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
  RunLock lock(file);
  if (file >= 0 && ::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return std::nullopt;
  }
  return lock;
}

RunLock::RunLock(RunLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

RunLock::~RunLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace train::runs
