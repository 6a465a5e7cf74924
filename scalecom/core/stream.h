#pragma once

#include <functional>
#include <memory>

#include "scalecom/core/device.h"

namespace scalecom::core {

/// Something under way. wait() returns when it is done and throws what it threw; it may be called
/// again, with the same answer. Dropping a Work does not stop what it stands for. On a CUDA stream
/// "done" is being in its place: whatever is put on that stream afterwards finds the result.
class [[nodiscard]] Work {
 public:
  struct State;

  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void wait();

 private:
  std::shared_ptr<State> state_;
};

/// Where work is put in order. By default it runs in the calling thread and is done when run()
/// returns; on a worker it runs in that worker's thread, first come, first served. A CUDA stream's
/// task runs in the calling thread too, and puts its kernels and copies on native(). A failure is
/// kept for Work::wait() in every case.
class Stream {
 public:
  Stream() = default;

  /// A thread of its own, which ends when the last copy of the stream is gone and its work is done.
  static Stream worker();

  /// A new CUDA stream that does not wait for the default one; it goes with its last copy, once its
  /// work is done. UsageError where there is no such device.
  static Stream cuda(Device device);
  /// Somebody else's: `native` is a cudaStream_t of that device, and outlives the copies of this.
  static Stream wrap(Device device, void* native);

  /// Whether work on it runs in a thread of its own.
  bool is_worker() const { return worker_ != nullptr; }

  /// The arrays that work on this stream may touch lie there.
  Device device() const { return device_; }
  /// The cudaStream_t of a CUDA stream.
  void* native() const { return native_.get(); }

  Work run(std::function<void()> task) const;

 private:
  class Worker;
  std::shared_ptr<Worker> worker_;
  Device device_;
  std::shared_ptr<void> native_;
};

}  // namespace scalecom::core
