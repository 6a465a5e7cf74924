#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "scalecom/core/cuda/check.h"
#include "scalecom/core/stream.h"

namespace scalecom::comm::testing {

/// Holds up a CUDA stream until it is opened: who returns in the meantime has not waited for the
/// device. It opens by itself in the end, so that who does wait fails and does not hang.
class Gate {
 public:
  void close(const core::Stream& stream) {
    core::cuda::check(cudaLaunchHostFunc(
                          static_cast<cudaStream_t>(stream.native()),
                          [](void* gate) { static_cast<Gate*>(gate)->wait(); }, this),
                      "cudaLaunchHostFunc");
  }
  void open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    bell_.notify_all();
  }
  bool is_open() {
    const std::lock_guard lock(mutex_);
    return open_;
  }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    bell_.wait_for(lock, std::chrono::seconds(20), [&] { return open_; });
    open_ = true;
  }

  std::mutex mutex_;
  std::condition_variable bell_;
  bool open_ = false;
};

}  // namespace scalecom::comm::testing
