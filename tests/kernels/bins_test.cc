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

// What a table finds, bin after bin.
struct Outcome {
  std::vector<std::uint32_t> positions;
  std::vector<float> largest;
  bool finite = true;

  bool operator==(const Outcome&) const = default;
};

Outcome visit(const Table& table, Problem& problem, std::int64_t bin) {
  std::vector<std::uint32_t> positions(static_cast<std::size_t>(bin));
  std::vector<std::int32_t> keys(static_cast<std::size_t>(bin));
  bins::Found found{positions.data(), keys.data()};
  Outcome outcome;
  const Tensor tensor = problem.tensor();
  for (std::int64_t begin = 0; begin < tensor.length; begin += bin) {
    const std::int64_t end = std::min(tensor.length, begin + bin);
    const std::int64_t count = table.bins.find(tensor, begin, end, found);
    outcome.positions.insert(outcome.positions.end(), positions.begin(), positions.begin() + count);
    outcome.largest.push_back(found.largest);
  }
  outcome.finite = found.finite;
  return outcome;
}

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

// The scalar reference is the first table.
TEST(Bins, EveryInstructionSetFindsTheSame) {
  for (const DType dtype : testing::kTypes) {
    for (const Data data : testing::kAllData) {
      for (const std::int64_t bin : {1, 7, 16, 50, 500, 1021}) {
        const Problem start(dtype, 2051, data, 11, 3, 1);
        Problem expected = start;
        const Outcome outcome = visit(*tables().front(), expected, bin);
        for (const Table* const table : tables()) {
          SCOPED_TRACE(table->isa);
          Problem problem = start;
          EXPECT_EQ(visit(*table, problem, bin), outcome);
          problem.expect_same(expected);
        }
      }
    }
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
