#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace cli {

/// A bar with an estimate of the time left, on the terminal that is standard error; without one,
/// nothing. It shows itself when the work has lasted a second.
class Progress {
 public:
  /// `done` of `total` were over before, and tell nothing about the speed.
  void start(std::int64_t done, std::int64_t total);
  void update(std::int64_t done, const std::string& note);
  /// Takes the bar away, for other output or for good; the next update brings it back.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::int64_t first_ = 0;
  std::int64_t total_ = 0;
  Clock::time_point started_;
  Clock::time_point shown_;
  bool visible_ = false;
  bool terminal_ = false;
};

}  // namespace cli
