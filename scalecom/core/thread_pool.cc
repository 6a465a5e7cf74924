#include "scalecom/core/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
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

#include "scalecom/core/arithmetic.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::core {
namespace {

constexpr int kMostThreads = 4096;

// The passes of one step follow one another within microseconds, and going to sleep and being woken
// takes longer than that. So those who wait look for a while first: long enough for the next pass,
// short enough to cost others nothing.
template <typename Condition>
void spin_until(const Condition& condition) {
  constexpr auto kLongest = std::chrono::microseconds(20);
  const auto until = std::chrono::steady_clock::now() + kLongest;
  while (!condition() && std::chrono::steady_clock::now() < until) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

// One call of parallel_for. The indices are divided into one share for each thread, and thread i
// begins with share i in every call: what it touched in the last pass is in its own caches. Who has
// done with its own share helps with the others'.
class Job {
 public:
  Job(std::int64_t count, const std::function<void(std::int64_t)>& task, int threads)
      : count_(count), task_(task), shares_(static_cast<std::size_t>(threads)) {}

  void help(std::size_t thread) {
    for (std::size_t i = 0; i < shares_.size(); ++i) work_on((thread + i) % shares_.size());
  }

  void wait() {
    spin_until([this] { return done_.load(std::memory_order_acquire) == count_; });
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return done_.load(std::memory_order_acquire) == count_; });
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  // On a cache line of its own: each is written by one thread most of the time.
  struct alignas(64) Share {
    std::atomic<std::int64_t> taken{0};
  };

  std::int64_t begin_of(std::size_t share) const {
    return static_cast<std::int64_t>(share) * count_ / static_cast<std::int64_t>(shares_.size());
  }

  void work_on(std::size_t share) {
    const std::int64_t begin = begin_of(share);
    const std::int64_t end = begin_of(share + 1);
    for (;;) {
      const std::int64_t index =
          begin + shares_[share].taken.fetch_add(1, std::memory_order_relaxed);
      if (index >= end) return;
      run(index);
    }
  }

  void run(std::int64_t index) {
    try {
      task_(index);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
    if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
      const std::lock_guard lock(mutex_);
      finished_.notify_all();
    }
  }

  const std::int64_t count_;
  const std::function<void(std::int64_t)>& task_;
  std::vector<Share> shares_;
  std::atomic<std::int64_t> done_{0};
  std::mutex mutex_;
  std::condition_variable finished_;
  std::exception_ptr failure_;
};

class Pool {
 public:
  explicit Pool(int threads) {
    // Where the system gives no more threads, fewer do: slower, but right.
    try {
      for (int i = 1; i < threads; ++i) {
        workers_.emplace_back([this, i] { serve(static_cast<std::size_t>(i)); });
      }
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
    auto job = std::make_shared<Job>(count, task, threads());
    const auto helpers =
        std::min<std::int64_t>(count - 1, static_cast<std::int64_t>(workers_.size()));
    if (helpers > 0) {
      const std::lock_guard lock(mutex_);
      for (std::int64_t i = 0; i < helpers; ++i) queue_.push_back(job);
      waiting_jobs_.store(true, std::memory_order_release);
    }
    for (std::int64_t i = 0; i < helpers; ++i) changed_.notify_one();
    job->help(0);
    if (helpers > 0) {
      // Nothing is left to take. Workers that are busy elsewhere must not find ever more of this.
      const std::lock_guard lock(mutex_);
      std::erase(queue_, job);
    }
    job->wait();
  }

 private:
  void serve(std::size_t thread) {
    const DefaultArithmetic arithmetic;  // and not that of whoever was the first to need the pool
    std::unique_lock lock(mutex_);
    for (;;) {
      if (queue_.empty() && !closing_) {
        waiting_jobs_.store(false, std::memory_order_relaxed);
        lock.unlock();
        spin_until([this] { return waiting_jobs_.load(std::memory_order_acquire); });
        lock.lock();
      }
      changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (closing_) return;
      const std::shared_ptr<Job> job = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      job->help(thread);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> queue_;
  bool closing_ = false;
  std::atomic<bool> waiting_jobs_{false};  // a hint for those who spin
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

// Never destroyed: threads that nobody waits for may call it until the process is gone.
std::unique_ptr<Pool>& pool() {
  static auto& instance = *new std::unique_ptr<Pool>(std::make_unique<Pool>(threads_wanted()));
  return instance;
}

}  // namespace

int pool_threads() {
  return pool()->threads();
}

void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& task) {
  if (count <= 0) return;
  const DefaultArithmetic arithmetic;
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
