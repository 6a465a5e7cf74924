#include "scalecom/core/stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace scalecom::core {
namespace {

class Streams : public testing::TestWithParam<bool> {
 protected:
  Stream stream = GetParam() ? Stream::worker() : Stream();
};

INSTANTIATE_TEST_SUITE_P(All, Streams, testing::Bool(),
                         [](const auto& info) { return info.param ? "worker" : "caller"; });

TEST_P(Streams, RunsInOrder) {
  std::vector<int> order;
  std::vector<Work> works;
  for (int i = 0; i < 1000; ++i) works.push_back(stream.run([&order, i] { order.push_back(i); }));
  for (Work& work : works) work.wait();
  ASSERT_EQ(order.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST_P(Streams, FailuresAreKeptAndThrownByEveryWait) {
  Work work = stream.run([] { throw std::runtime_error("no"); });
  Work next = stream.run([] {});
  for (int i = 0; i < 2; ++i) {
    try {
      work.wait();
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()), "no");
    }
  }
  EXPECT_NO_THROW(next.wait());
  EXPECT_NO_THROW(next.wait());
}

TEST_P(Streams, WhatATaskHoldsIsReleasedWhenItIsDone) {
  for (int i = 0; i < 200; ++i) {
    auto held = std::make_shared<int>(1);
    const std::weak_ptr<int> seen = held;
    Work work = stream.run([held = std::move(held)] {});
    work.wait();
    ASSERT_TRUE(seen.expired());
  }
}

TEST_P(Streams, DroppedWorkIsDoneAllTheSame) {
  std::atomic<int> count = 0;
  for (int i = 0; i < 10; ++i) std::ignore = stream.run([&] { ++count; });
  stream.run([] {}).wait();
  EXPECT_EQ(count, 10);
}

TEST_P(Streams, ManyThreadsMayAddAndWait) {
  int count = 0;  // not atomic: one task runs at a time on a worker
  std::atomic<int> count_in_callers = 0;
  std::vector<std::thread> callers;
  for (int t = 0; t < 8; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        Work work = stream.run([&] { GetParam() ? void(++count) : void(++count_in_callers); });
        if (i % 7 == 0) work.wait();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  stream.run([] {}).wait();
  EXPECT_EQ(count + count_in_callers, 4000);
}

TEST(Stream, ByDefaultRunsInTheCallersThread) {
  std::thread::id where;
  bool done = false;
  Work work = Stream().run([&] {
    where = std::this_thread::get_id();
    done = true;
  });
  EXPECT_TRUE(done);
  EXPECT_EQ(where, std::this_thread::get_id());
  work.wait();
}

TEST(Stream, AWorkerHasItsOwnThreadAndCopiesShareIt) {
  const Stream first = Stream::worker();
  const Stream copy = first;
  std::thread::id a;
  std::thread::id b;
  first.run([&] { a = std::this_thread::get_id(); }).wait();
  copy.run([&] { b = std::this_thread::get_id(); }).wait();
  EXPECT_EQ(a, b);
  EXPECT_NE(a, std::this_thread::get_id());
}

TEST(Stream, RunReturnsBeforeTheTaskDoesOnAWorker) {
  std::promise<void> gate;
  const Stream stream = Stream::worker();
  Work work = stream.run([opened = gate.get_future().share()] { opened.wait(); });
  gate.set_value();
  work.wait();
}

TEST(Stream, TheLastCopyWaitsForTheWork) {
  std::atomic<int> count = 0;
  {
    const Stream stream = Stream::worker();
    for (int i = 0; i < 20; ++i) {
      std::ignore = stream.run([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ++count;
      });
    }
  }
  EXPECT_EQ(count, 20);
}

TEST(Stream, ATaskMayHoldTheLastCopyOfItsOwnStream) {
  for (int i = 0; i < 50; ++i) {
    std::optional<Stream> stream = Stream::worker();
    std::promise<void> gate;
    Work work = stream->run([own = *stream, opened = gate.get_future().share()] { opened.wait(); });
    stream.reset();
    gate.set_value();
    work.wait();
  }
}

TEST(Stream, ATaskMayAddToItsOwnStream) {
  const Stream stream = Stream::worker();
  std::optional<Work> inner;
  stream.run([&] { inner = stream.run([] { throw std::logic_error("inner"); }); }).wait();
  EXPECT_THROW(inner->wait(), std::logic_error);
}

}  // namespace
}  // namespace scalecom::core
