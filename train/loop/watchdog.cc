#include "train/loop/watchdog.h"

#include <cstdio>
#include <cstdlib>

namespace train::loop {

Watchdog::Watchdog(std::chrono::milliseconds deadline, const std::string& message)
    : thread_([this, deadline, message] {
        std::unique_lock lock(mutex_);
        if (over_.wait_for(lock, deadline, [this] { return is_over_; })) return;
        std::fprintf(stderr, "%s\n", message.c_str());
        std::fflush(nullptr);
        std::_Exit(1);
      }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_one();
  thread_.join();
}

}  // namespace train::loop
