#include "scalecom/core/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::core {
namespace {

constexpr int kMostThreads = 4096;

// One call of parallel_for. Every thread that helps takes the next index until none is left.
struct Job {
  Job(std::int64_t count, const std::function<void(std::int64_t)>& task)
      : count(count), task(task) {}

  void help() {
    for (;;) {
      const std::int64_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= count) return;
      try {
        task(index);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
      if (done.fetch_add(1, std::memory_order_acq_rel) + 1 == count) {
        const std::lock_guard lock(mutex);
        finished.notify_all();
      }
    }
  }

  void wait() {
    std::unique_lock lock(mutex);
    finished.wait(lock, [this] { return done.load(std::memory_order_acquire) == count; });
    if (failure) std::rethrow_exception(failure);
  }

  const std::int64_t count;
  const std::function<void(std::int64_t)>& task;
  std::atomic<std::int64_t> next{0};
  std::atomic<std::int64_t> done{0};
  std::mutex mutex;
  std::condition_variable finished;
  std::exception_ptr failure;
};

class Pool {
 public:
  explicit Pool(int threads) {
    // Where the system gives no more threads, fewer do: slower, but right.
    try {
      for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
    }
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  void run(std::int64_t count, const std::function<void(std::int64_t)>& task) {
    auto job = std::make_shared<Job>(count, task);
    const auto helpers =
        std::min<std::int64_t>(count - 1, static_cast<std::int64_t>(workers_.size()));
    if (helpers > 0) {
      const std::lock_guard lock(mutex_);
      for (std::int64_t i = 0; i < helpers; ++i) queue_.push_back(job);
    }
    for (std::int64_t i = 0; i < helpers; ++i) changed_.notify_one();
    job->help();
    if (helpers > 0) {
      // Nothing is left to take. Workers that are busy elsewhere must not find ever more of this.
      const std::lock_guard lock(mutex_);
      std::erase(queue_, job);
    }
    job->wait();
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (closing_) return;
      const std::shared_ptr<Job> job = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      job->help();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> queue_;
  bool closing_ = false;
  std::vector<std::thread> workers_;
};

int threads_wanted() {
  if (const char* text = std::getenv("SCALECOM_THREADS")) {
    int threads = 0;
    const char* end = text + std::strlen(text);
    const auto result = std::from_chars(text, end, threads);
    if (result.ec != std::errc{} || result.ptr != end || threads < 1 || threads > kMostThreads) {
      throw UsageError(
          concat("[pool] SCALECOM_THREADS is '", text, "'; allowed: 1 to ", kMostThreads));
    }
    return threads;
  }
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::unique_ptr<Pool>& pool() {
  static std::unique_ptr<Pool> instance = std::make_unique<Pool>(threads_wanted());
  return instance;
}

}  // namespace

int pool_threads() {
  return pool()->threads();
}

void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& task) {
  if (count <= 0) return;
  if (count == 1) {
    task(0);
    return;
  }
  pool()->run(count, task);
}

void set_pool_threads(int threads) {
  if (threads < 1 || threads > kMostThreads) {
    throw UsageError(concat("[pool] ", threads, " threads; allowed: 1 to ", kMostThreads));
  }
  pool() = std::make_unique<Pool>(threads);
}

}  // namespace scalecom::core
