#pragma once

#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "scalecom/comm/nccl/handle.h"
#include "scalecom/core/cuda/runtime.h"

namespace scalecom::comm::nccl {

/// Watches over calls that are on CUDA streams, where no thread waits for them. A call is late when
/// its deadline has passed since its stream came to it. When one is, or NCCL reports an error, the
/// communicator fails, which ends its kernels.
class Watch {
 public:
  explicit Watch(Handle& handle);
  /// Returns when all calls are done or have failed.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// Runs `body`, which puts a call on the operation's stream, and watches it from then on.
  template <typename Body>
  void run(const Fabric::Operation& operation, const Body& body) {
    Entry entry = begin(operation);
    body();
    follow(std::move(entry));
  }

 private:
  using Clock = Fabric::Clock;
  using Lock = std::unique_lock<std::mutex>;

  struct Entry {
    core::cuda::Event before;
    core::cuda::Event after;
    Fabric::Operation operation;
    /// Known once the stream has come to the call.
    std::optional<Clock::time_point> until;
  };

  Entry begin(const Fabric::Operation& operation);
  void follow(Entry entry);
  core::cuda::Event event();

  void watch();
  /// With the mutex held: what is wrong with the calls under way, if anything. Those that are done
  /// are forgotten.
  std::string look();

  Handle& handle_;
  std::mutex mutex_;
  std::condition_variable bell_;
  bool ending_ = false;
  std::list<Entry> entries_;
  /// Events that are free to be used again.
  std::vector<core::cuda::Event> events_;
  std::thread thread_;
};

}  // namespace scalecom::comm::nccl
