#include "scalecom/kernels/bins.h"

#include <gtest/gtest.h>

#include <cmath>

#include "scalecom/core/thread_pool.h"
#include "tests/kernels/fixture.h"

namespace scalecom::kernels {
namespace {

using testing::Data;
using testing::DType;
using testing::Problem;

// Of one bin: max |G| = 3; H = G + g.
TEST(Bins, AnEntryWhoseTwofoldStepReachesTheLargestIsSent) {
  std::vector<float> memory = {1, 2, -1, 2.5F, 0};
  std::vector<float> g = {0.5F, 1, -1, -0.5F, 0};  // G: 1.5 3 -2 2 0; H: 2 4 -3 1.5 0
  const Tensor tensor{g.data(), DType::kFloat32, memory.data(), 5};
  const bins::Sent sent = bins::select(tensor, 500);
  EXPECT_EQ(sent.entries, (std::vector<Ternary>{{1, false}, {2, true}}));
  EXPECT_EQ(sent.scale, 3.0F);
  EXPECT_EQ(memory, (std::vector<float>{1.5F, 0, 1, 2, 0}));
  bins::put_back(tensor, sent);
  EXPECT_EQ(memory, (std::vector<float>{1.5F, 3, -2, 2, 0}));
}

TEST(Bins, TheScaleIsTheMeanOfTheBinsLargest) {
  std::vector<float> memory(5, 0.0F);
  std::vector<float> g = {1, 2, 0, 0, 6};
  const bins::Sent sent = bins::select({g.data(), DType::kFloat32, memory.data(), 5}, 2);
  EXPECT_FLOAT_EQ(sent.scale, (2 + 0 + 6) / 3.0F);
  EXPECT_EQ(sent.entries, (std::vector<Ternary>{{0, false}, {1, false}, {4, false}}));
}

TEST(Bins, WhatIsNotFiniteCountsAsNothing) {
  for (const float bad : {std::nanf(""), INFINITY, -3e38F}) {
    std::vector<float> memory = {1, 1, 1};
    std::vector<float> g = {1, bad, 1};
    const bins::Sent sent = bins::select({g.data(), DType::kFloat32, memory.data(), 3}, 3);
    EXPECT_FALSE(sent.finite) << bad;
    EXPECT_EQ(memory[1], 1.0F);
  }
}

TEST(Bins, NoResultDependsOnTheNumberOfThreads) {
  const int threads = core::pool_threads();
  for (const DType dtype : testing::kTypes) {
    Problem one(dtype, 200003, Data::kNormal, 7, 3, 1);
    Problem many = one;
    core::set_pool_threads(1);
    const bins::Sent first = bins::select(one.tensor(), 50);
    core::set_pool_threads(4);
    const bins::Sent second = bins::select(many.tensor(), 50);
    EXPECT_EQ(first.entries, second.entries);
    EXPECT_EQ(first.scale, second.scale);
    many.expect_same(one);
  }
  core::set_pool_threads(threads);
}

}  // namespace
}  // namespace scalecom::kernels
