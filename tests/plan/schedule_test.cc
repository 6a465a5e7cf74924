#include "scalecom/plan/schedule.h"

#include <gtest/gtest.h>

#include <random>

namespace scalecom::plan {
namespace {

// Times are small powers of two, so that sums are exact.
TEST(Schedule, NothingToReduce) {
  const StepTime time = schedule({1, {2, 2}, {}, 0.5});
  EXPECT_EQ(time.step, 5.5);
  EXPECT_EQ(time.compute, 5.5);
  EXPECT_EQ(time.exposed, 0);
}

TEST(Schedule, WiresWorkWhileTheDeviceComputes) {
  // The first bucket travels during the second part; the second is waited for.
  const StepTime time = schedule({1, {2, 2}, {{0, 0, 0, 1, 0}, {1, 0, 0, 1, 0}}});
  EXPECT_EQ(time.step, 6);
  EXPECT_EQ(time.comm, 2);
  EXPECT_EQ(time.exposed, 1);
}

TEST(Schedule, AWireCarriesOneBucketAtATime) {
  const StepTime time = schedule({1, {2, 2}, {{0, 0, 0, 4, 0}, {1, 0, 0, 1, 0}}});
  EXPECT_EQ(time.step, 1 + 2 + 4 + 1);
  EXPECT_EQ(time.exposed, 3);
}

TEST(Schedule, CompressingTakesTheDeviceAndGoesFirst) {
  const StepTime time = schedule({1, {2, 2}, {{0, 0, 1, 4, 0}, {1, 0, 1, 0.5, 0}}});
  // 1 + 2 + 1, then the wire until 8; meanwhile part two and its compression until 7.
  EXPECT_EQ(time.step, 8.5);
  EXPECT_EQ(time.compress, 2);
  EXPECT_EQ(time.exposed, 1.5);
}

TEST(Schedule, GroupsGoInsideBetweenAndInsideAgain) {
  const StepTime alone = schedule({1, {2}, {{0, 1, 0.5, 2, 1}}});
  EXPECT_EQ(alone.step, 1 + 2 + 1 + 0.5 + 2 + 1);
  EXPECT_EQ(alone.comm, 4);
  // Two wires at once: the second gathers while the first is between nodes.
  const StepTime two = schedule({0, {1, 1}, {{0, 1, 0, 2, 1}, {1, 1, 0, 2, 1}}});
  EXPECT_EQ(two.step, 1 + 1 + 2 + 2 + 1);
}

TEST(Schedule, TheLastToBeginIsNotAlwaysTheLastToEnd) {
  EXPECT_EQ(schedule({1, {2, 2, 0.5}, {{0, 0, 0, 16, 0}}}).step, 1 + 2 + 16);
}

TEST(Schedule, WhatIsNotCompressedDoesNotWaitForTheDevice) {
  // Gathered from 1 to 2, between nodes until 4; computing ends at 5.
  const StepTime time = schedule({0, {1, 4}, {{0, 1, 0, 2, 0}}});
  EXPECT_EQ(time.step, 5);
  EXPECT_EQ(time.exposed, 0);
}

TEST(Schedule, AWireTakesWhatComesFirst) {
  // The second is gathered at 4, long before the first is back at 10.
  EXPECT_EQ(schedule({0, {1, 3}, {{0, 1, 0, 8, 1}, {1, 1, 0, 1, 1}}}).step, 12);
}

TEST(Schedule, WithoutOverlapAllIsAddedUp) {
  StepParts parts{1, {2, 2}, {{0, 1, 0.5, 1, 1}, {1, 0, 0, 2, 0}}, 0.25};
  parts.overlaps = false;
  const StepTime time = schedule(parts);
  EXPECT_EQ(time.step, 1 + 4 + 3.5 + 2 + 0.25);
  EXPECT_EQ(time.exposed, 5);
}

TEST(Schedule, LiesBetweenItsLongestPartAndTheSum) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> draw(0, 1);
  for (int trial = 0; trial < 500; ++trial) {
    StepParts parts{draw(random), {}, {}, draw(random)};
    for (int i = 0; i < 6; ++i) parts.backward.push_back(draw(random));
    double wires = 0;
    for (std::size_t i = 0; i < 6; i += 1 + random() % 2) {
      parts.buckets.push_back(
          {i, draw(random), draw(random), draw(random) * 4, trial % 2 * draw(random)});
      wires += parts.buckets.back().between;
    }
    const StepTime with = schedule(parts);
    parts.overlaps = false;
    const StepTime without = schedule(parts);
    EXPECT_LE(with.step, without.step + 1e-9);
    EXPECT_GE(with.step, with.compute + with.compress - 1e-9);
    EXPECT_GE(with.step, parts.forward + wires + parts.other - 1e-9);
    EXPECT_NEAR(with.exposed, with.step - with.compute - with.compress, 1e-9);
  }
}

}  // namespace
}  // namespace scalecom::plan
