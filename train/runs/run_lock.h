#pragma once

#include <filesystem>
#include <optional>

namespace train::runs {

/// Says that this process is at work on a run, so that no other one writes to it. Given up with the
/// object, and by the system where the process ends in any other way.
class RunLock {
 public:
  /// Nothing where another process has it. The folder is made where it is missing. Where it cannot
  /// be written, or its file system has no locks, nobody is kept out.
  static std::optional<RunLock> take(const std::filesystem::path& run);
  /// What stands in the run's folder for it, and stays there.
  static constexpr const char* kFile = "lock";

  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&& other) noexcept;
  ~RunLock();

 private:
  explicit RunLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_ = -1;
};

}  // namespace train::runs
