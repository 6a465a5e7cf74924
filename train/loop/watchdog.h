#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace train::loop {

/// For calls that cannot be given a deadline, such as MPI's own beginning: unless it is gone in
/// time, the program says `message` and ends with status 1.
class Watchdog {
 public:
  Watchdog(std::chrono::milliseconds deadline, const std::string& message);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace train::loop
