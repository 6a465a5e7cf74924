#include "train/loop/replica.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/train/line_task.h"

namespace train::loop {
namespace {

using namespace std::chrono_literals;

runs::Config config() {
  runs::Config config;
  config.spec = "dense";
  config.steps = 9;
  config.learning_rate = 1;
  config.learning_rate_warmup = 0.5;
  return config;
}

void take_gradient(Replica& replica, int learner) {
  const std::vector<std::int64_t> samples{learner};
  std::vector<float> gradient(8);
  float loss = 0;
  tasks::Shard shard{learner, 0, samples, gradient, &loss};
  replica.gradients({&shard, 1});
}

int most_at_once(int seats, int learners) {
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  auto task = std::make_unique<LineTask>();
  task->on_gradient = [&](const tasks::Shard&) {
    const int now = ++inside;
    int seen = most;
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    std::this_thread::sleep_for(1ms);
    --inside;
  };
  Replica replica(std::move(task), config(), seats);
  std::vector<std::jthread> threads;
  for (int learner = 0; learner < learners; ++learner) {
    threads.emplace_back([&replica, learner] {
      for (int i = 0; i < 10; ++i) take_gradient(replica, learner);
    });
  }
  threads.clear();
  return most;
}

TEST(ReplicaTest, IsLentToOneAtATime) {
  EXPECT_EQ(most_at_once(1, 6), 1);
}

TEST(ReplicaTest, IsLentToAsManyAsThereAreSeats) {
  EXPECT_LE(most_at_once(3, 8), 3);
}

TEST(ReplicaTest, ASeatIsFreeAgainAfterAFailure) {
  auto task = std::make_unique<LineTask>();
  task->on_gradient = [](const tasks::Shard& shard) {
    if (shard.learner == 0) throw std::runtime_error("no");
  };
  Replica replica(std::move(task), config(), 1);
  EXPECT_THROW(take_gradient(replica, 0), std::runtime_error);
  take_gradient(replica, 1);
}

TEST(ReplicaTest, TheGradientIsTheLearnersOwnAndTheUpdateEverybodys) {
  Replica replica(std::make_unique<LineTask>(), config(), 2);
  const std::vector<std::int64_t> samples{3};
  std::vector<float> first(8);
  std::vector<float> second(8);
  float loss = 0;
  tasks::Shard shard{0, 0, samples, first, &loss};
  replica.gradients({&shard, 1});
  EXPECT_EQ(first, std::vector<float>(8, 3.5F));
  replica.update(std::vector<float>(8, 1), 0);
  EXPECT_EQ(first, std::vector<float>(8, 3.5F));
  shard.gradient = second;
  replica.gradients({&shard, 1});
  EXPECT_LT(second[0], 3.5F);
  EXPECT_EQ(replica.states()[0].values[7], 1);
  EXPECT_EQ(dynamic_cast<const LineTask&>(replica.task()).times_written, 1);
}

}  // namespace
}  // namespace train::loop
