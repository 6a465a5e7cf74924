#pragma once

#include <functional>
#include <memory>

namespace scalecom::core {

/// Something under way. wait() returns when it is done and throws what it threw; it may be called
/// again, with the same answer. Dropping a Work does not stop what it stands for.
class [[nodiscard]] Work {
 public:
  struct State;

  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void wait();

 private:
  std::shared_ptr<State> state_;
};

/// Where work is put in order. By default it runs in the calling thread and is done when run()
/// returns; on a worker it runs in that worker's thread, first come, first served. A failure is
/// kept for Work::wait() in both cases.
class Stream {
 public:
  Stream() = default;

  /// A thread of its own, which ends when the last copy of the stream is gone and its work is done.
  static Stream worker();

  Work run(std::function<void()> task) const;

 private:
  class Worker;
  std::shared_ptr<Worker> worker_;
};

}  // namespace scalecom::core
