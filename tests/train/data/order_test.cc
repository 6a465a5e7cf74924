#include "train/data/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace train::data {
namespace {

std::vector<std::int64_t> batch(const Order& order, int learner, std::int64_t step,
                                std::int64_t size) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(size));
  order.batch(learner, step, samples);
  return samples;
}

// All samples of the first `steps` steps, in the order in which epochs go through them.
std::vector<std::int64_t> stream(const Order& order, int learners, std::int64_t size,
                                 std::int64_t steps) {
  std::vector<std::int64_t> all;
  for (std::int64_t step = 0; step < steps; ++step) {
    for (int learner = 0; learner < learners; ++learner) {
      const auto part = batch(order, learner, step, size);
      all.insert(all.end(), part.begin(), part.end());
    }
  }
  return all;
}

TEST(OrderTest, EverySampleComesOnceAnEpoch) {
  for (const std::int64_t samples : {1, 2, 3, 17, 64, 65, 1000}) {
    const Order order(7, samples, 3, 5);
    const auto all = stream(order, 3, 5, 4 * samples);
    for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
      std::vector<std::int64_t> seen(all.begin() + epoch * samples,
                                     all.begin() + (epoch + 1) * samples);
      std::sort(seen.begin(), seen.end());
      for (std::int64_t i = 0; i < samples; ++i) ASSERT_EQ(seen[static_cast<std::size_t>(i)], i);
    }
  }
}

TEST(OrderTest, EpochsAndSeedsDiffer) {
  const auto first = stream(Order(1, 1000, 1, 1000), 1, 1000, 2);
  const auto other = stream(Order(2, 1000, 1, 1000), 1, 1000, 1);
  int same_epoch = 0;
  int same_seed = 0;
  int in_place = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    same_epoch += first[i] == first[i + 1000] ? 1 : 0;
    same_seed += first[i] == other[i] ? 1 : 0;
    in_place += first[i] == static_cast<std::int64_t>(i) ? 1 : 0;
  }
  EXPECT_LT(same_epoch, 10);
  EXPECT_LT(same_seed, 10);
  EXPECT_LT(in_place, 10);
}

// A learner's samples do not depend on what was asked for before, by whom.
TEST(OrderTest, IsAFunctionOfSeedLearnerAndStep) {
  const Order one(3, 100, 4, 8);
  const Order another(3, 100, 4, 8);
  for (std::int64_t step = 9; step >= 0; --step) batch(another, 1, step, 8);
  EXPECT_EQ(batch(one, 2, 5, 8), batch(another, 2, 5, 8));
  EXPECT_NE(batch(one, 2, 5, 8), batch(one, 3, 5, 8));
}

TEST(OrderTest, TheSameSamplesMakeAStepHoweverManyLearnersShareThem) {
  EXPECT_EQ(stream(Order(5, 300, 2, 8), 2, 8, 20), stream(Order(5, 300, 8, 2), 8, 2, 20));
}

TEST(OrderTest, CountsEpochs) {
  const Order order(1, 10, 2, 2);
  EXPECT_EQ(order.epochs_after(2), 0);
  EXPECT_EQ(order.epochs_after(3), 1);
  EXPECT_EQ(order.epochs_after(5), 2);
}

// 4 learners, then 3, then 8: an epoch still has every sample once.
TEST(OrderTest, OtherLearnersGoOnWhereTheyFindIt) {
  std::multiset<std::int64_t> seen;
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  for (const auto& [learners, until] : {std::pair{4, 3}, {3, 7}, {8, 14}}) {
    Order order(3, 200, learners, 2);
    order.continue_after(steps, samples);
    for (; steps < until; ++steps) {
      for (int learner = 0; learner < learners; ++learner) {
        for (const std::int64_t sample : batch(order, learner, steps, 2)) seen.insert(sample);
      }
    }
    samples = order.seen_after(steps);
  }
  EXPECT_EQ(samples, 3 * 8 + 4 * 6 + 7 * 16);
  EXPECT_EQ(seen.size(), 160U);
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 160U);
}

}  // namespace
}  // namespace train::data
