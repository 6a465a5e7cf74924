#include "scalecom/core/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "scalecom/core/error.h"
#include "tests/core/odd_arithmetic.h"

namespace scalecom::core {
namespace {

class Pools : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_pool_threads(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Threads, Pools, testing::Values(1, 2, 5));

TEST_P(Pools, EveryIndexRunsOnce) {
  EXPECT_EQ(pool_threads(), GetParam());
  for (const std::int64_t count : {0, 1, 2, 3, 7, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
    parallel_for(count, [&](std::int64_t i) { ++runs[static_cast<std::size_t>(i)]; });
    for (const auto& run : runs) ASSERT_EQ(run, 1);
  }
  parallel_for(-1, [](std::int64_t) { FAIL(); });
}

TEST_P(Pools, ResultsAreSeenByTheCaller) {
  for (int round = 0; round < 2000; ++round) {
    std::vector<int> plain(8);
    parallel_for(8, [&](std::int64_t i) { plain[static_cast<std::size_t>(i)] = round + 1; });
    for (const int value : plain) ASSERT_EQ(value, round + 1);
  }
}

TEST_P(Pools, AFailureIsThrownWhenAllAreDone) {
  std::atomic<int> runs = 0;
  EXPECT_THROW(parallel_for(100,
                            [&](std::int64_t i) {
                              ++runs;
                              if (i % 10 == 3) throw std::out_of_range("index");
                            }),
               std::out_of_range);
  EXPECT_EQ(runs, 100);
  EXPECT_THROW(parallel_for(1, [](std::int64_t) { throw std::logic_error("one"); }),
               std::logic_error);
  parallel_for(100, [&](std::int64_t) { ++runs; });
  EXPECT_EQ(runs, 200);
}

// Where nobody wakes them, one thread does all of it, and nothing but the time tells.
TEST_P(Pools, ThreadsThatSleepAreWoken) {
  using Clock = std::chrono::steady_clock;
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const auto until = Clock::now() + std::chrono::seconds(5);
    std::atomic<int> met = 0;
    std::atomic<bool> late = false;
    parallel_for(GetParam(), [&](std::int64_t) {
      for (++met; met < GetParam() && !late; std::this_thread::yield()) {
        if (Clock::now() > until) late = true;
      }
    });
    ASSERT_FALSE(late) << met << " of them came";
  }
}

TEST_P(Pools, CallsMayBeNested) {
  std::atomic<int> runs = 0;
  parallel_for(8, [&](std::int64_t) {
    parallel_for(8, [&](std::int64_t) { parallel_for(8, [&](std::int64_t) { ++runs; }); });
  });
  EXPECT_EQ(runs, 512);
}

TEST_P(Pools, ManyCallersAtOnce) {
  std::atomic<std::int64_t> total = 0;
  std::vector<std::thread> callers;
  for (int t = 0; t < 16; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        std::int64_t mine = 0;
        std::mutex mutex;
        parallel_for(20, [&](std::int64_t i) {
          const std::lock_guard lock(mutex);
          mine += i;
        });
        total += mine;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 16 * 100 * 190);
}

TEST_P(Pools, NoMoreThreadsThanWereAskedFor) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  parallel_for(500, [&](std::int64_t) {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_LE(threads.size(), static_cast<std::size_t>(GetParam()));
}

// The caller's goes to the threads that it starts, and stays its own.
TEST_P(Pools, TasksHaveTheDefaultArithmetic) {
  const OddArithmetic odd;
  set_pool_threads(GetParam());
  for (const std::int64_t count : {1, 2, 1000}) {
    std::atomic<std::int64_t> wrong = 0;
    parallel_for(count, [&](std::int64_t) { wrong += has_default_arithmetic() ? 0 : 1; });
    EXPECT_EQ(wrong, 0) << count;
  }
  EXPECT_FALSE(has_default_arithmetic());
}

// While one call keeps the only worker busy, a million others must not pile up behind it.
TEST(Pool, FinishedCallsLeaveNothingBehind) {
  set_pool_threads(2);
  std::atomic<bool> worker_busy = false;
  std::atomic<bool> done = false;
  std::thread holder([&] {
    parallel_for(2, [&](std::int64_t) {
      worker_busy = true;
      while (!done) std::this_thread::yield();
    });
  });
  while (!worker_busy) std::this_thread::yield();
  std::atomic<int> runs = 0;
  for (int i = 0; i < 1000; ++i) parallel_for(2, [&](std::int64_t) { ++runs; });
  done = true;
  holder.join();
  EXPECT_EQ(runs, 2000);
}

TEST(Pool, RefusesNumbersOfThreadsThatCannotBe) {
  EXPECT_THROW(set_pool_threads(0), UsageError);
  EXPECT_THROW(set_pool_threads(-3), UsageError);
  EXPECT_THROW(set_pool_threads(1 << 30), UsageError);
}

// The variable is read once in a process, so each value gets a process of its own.
class ThreadsVariable : public testing::Test {
 protected:
  ThreadsVariable() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  [[noreturn]] static void report(const char* value) {
    setenv("SCALECOM_THREADS", value, 1);
    try {
      std::fprintf(stderr, "threads: %d\n", pool_threads());
    } catch (const UsageError& error) {
      std::fprintf(stderr, "refused: %s\n", error.what());
    }
    std::exit(0);
  }
};

TEST_F(ThreadsVariable, SetsTheNumberOfThreads) {
  EXPECT_EXIT(report("3"), testing::ExitedWithCode(0), "threads: 3");
}

TEST_F(ThreadsVariable, BadValuesAreRefusedWithWhatIsAllowed) {
  for (const char* value : {"0", "-1", "", "two", "3x", " 3", "1e3", "99999999999", "1000000"}) {
    EXPECT_EXIT(report(value), testing::ExitedWithCode(0),
                "refused: .*SCALECOM_THREADS is .*allowed: 1 to ");
  }
}

// A thread that nobody waits for, such as that of a bucket under way, may need the pool until the
// process is gone.
class AtTheEnd : public ThreadsVariable {
 protected:
  [[noreturn]] static void work_last() {
    setenv("SCALECOM_THREADS", "3", 1);
    // Before the pool is made, so after all that would end with it.
    std::atexit([] {
      std::atomic<int> runs = 0;
      parallel_for(100, [&](std::int64_t) { ++runs; });
      std::fprintf(stderr, "runs: %d\n", runs.load());
    });
    parallel_for(100, [](std::int64_t) {});
    std::exit(0);
  }
};

TEST_F(AtTheEnd, ThePoolStillWorks) {
  EXPECT_EXIT(work_last(), testing::ExitedWithCode(0), "runs: 100");
}

}  // namespace
}  // namespace scalecom::core
