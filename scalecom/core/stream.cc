#include "scalecom/core/stream.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "scalecom/core/cuda/runtime.h"

namespace scalecom::core {

struct Work::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::exception_ptr failure;

  // What the task holds is released before it counts as done.
  void run(std::function<void()> task) {
    std::exception_ptr thrown;
    try {
      task();
    } catch (...) {
      thrown = std::current_exception();
    }
    task = nullptr;
    const std::lock_guard lock(mutex);
    failure = thrown;
    done = true;
    changed.notify_all();
  }
};

void Work::wait() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->done; });
  if (state_->failure) std::rethrow_exception(state_->failure);
}

class Stream::Worker {
 public:
  Worker() : thread_([queue = queue_] { queue->serve(); }) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  ~Worker() {
    {
      const std::lock_guard lock(queue_->mutex);
      queue_->closing = true;
    }
    queue_->changed.notify_one();
    // A task may hold the last copy of its own stream; its thread then ends by itself.
    if (thread_.get_id() == std::this_thread::get_id()) {
      thread_.detach();
    } else {
      thread_.join();
    }
  }

  void add(std::function<void()> task, std::shared_ptr<Work::State> state) {
    {
      const std::lock_guard lock(queue_->mutex);
      queue_->waiting.emplace_back(std::move(task), std::move(state));
    }
    queue_->changed.notify_one();
  }

 private:
  // The thread's own, since it may outlive the Worker.
  struct Queue {
    void serve() {
      std::unique_lock lock(mutex);
      for (;;) {
        changed.wait(lock, [this] { return closing || !waiting.empty(); });
        if (waiting.empty()) return;
        auto [task, state] = std::move(waiting.front());
        waiting.pop_front();
        lock.unlock();
        state->run(std::move(task));
        state.reset();
        lock.lock();
      }
    }

    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::pair<std::function<void()>, std::shared_ptr<Work::State>>> waiting;
    bool closing = false;
  };

  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::thread thread_;
};

Stream Stream::worker() {
  Stream stream;
  stream.worker_ = std::make_shared<Worker>();
  return stream;
}

Stream Stream::cuda(Device device) {
  cuda::require(device);
  Stream stream;
  stream.device_ = device;
  stream.native_ = cuda::new_stream(device);
  return stream;
}

Stream Stream::wrap(Device device, void* native) {
  Stream stream;
  stream.device_ = device;
  stream.native_ = std::shared_ptr<void>(native, [](void*) {});
  return stream;
}

Work Stream::run(std::function<void()> task) const {
  auto state = std::make_shared<Work::State>();
  if (worker_) {
    worker_->add(std::move(task), state);
  } else {
    state->run(std::move(task));
  }
  return Work(std::move(state));
}

}  // namespace scalecom::core
