#include "scalecom/methods/contraction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "scalecom/methods/method.h"
#include "tests/methods/ranks.h"

namespace scalecom::methods {
namespace {

using Kind = layout::Selection::Kind;

constexpr layout::Selection kLargest{Kind::kLargest, 0};
constexpr layout::Selection kExact{Kind::kExact, 0};

std::vector<float> only(std::vector<float> y, const std::vector<std::size_t>& sent) {
  std::vector<float> result(y.size());
  for (const std::size_t i : sent) result[i] = y[i];
  return result;
}

TEST(Contraction, OfALeaderThatIsRightInOneChunkOfTwo) {
  const layout::Layout layout = testing::layout_of({{6, 3}});
  const std::vector<float> y{1, -4, 2, 0, 3, 1};
  const auto seen = measure_contraction(y, only(y, {1, 5}), layout, kLargest);
  ASSERT_TRUE(seen);
  EXPECT_DOUBLE_EQ(seen->hamming, 0.5);
  EXPECT_DOUBLE_EQ(seen->measured, 14.0 / 31);
  EXPECT_DOUBLE_EQ(seen->exact, 6.0 / 31);
  EXPECT_DOUBLE_EQ(seen->bound(), 0.5 + 0.5 * 6 / 31);
}

TEST(Contraction, OfTheRightEntriesIsTheExactOne) {
  const layout::Layout layout = testing::layout_of({{6, 3}});
  const std::vector<float> y{1, -4, 2, 0, 3, 1};
  const auto seen = measure_contraction(y, only(y, {1, 4}), layout, kLargest);
  EXPECT_EQ(seen->hamming, 0);
  EXPECT_DOUBLE_EQ(seen->measured, seen->exact);
  EXPECT_DOUBLE_EQ(seen->bound(), seen->exact);
}

TEST(Contraction, WhatIsSentWithAnErrorLeavesTheError) {
  const layout::Layout layout = testing::layout_of({{2, 2}});
  const std::vector<float> y{4, 2};
  EXPECT_DOUBLE_EQ(measure_contraction(y, std::vector<float>{3, 0}, layout, kLargest)->measured,
                   5.0 / 20);
}

TEST(Contraction, LooksAtCompressedSlicesOnly) {
  const layout::Layout layout = testing::layout_of({{2, 1}, {2, 2}, {1, 1}});
  const std::vector<float> y{100, 100, 3, 4, 100};
  const auto seen = measure_contraction(y, only(y, {3}), layout, kLargest);
  EXPECT_EQ(seen->hamming, 0);
  EXPECT_DOUBLE_EQ(seen->measured, 9.0 / 25);
}

TEST(Contraction, AnExactSelectionSeesAllSlicesAsOne) {
  const layout::Layout layout = testing::layout_of({{4, 2}, {1, 1}, {4, 2}});
  const std::vector<float> y{9, 8, 7, 6, 100, 1, 2, 3, 5};
  EXPECT_EQ(measure_contraction(y, only(y, {0, 1, 2, 3}), layout, kExact)->hamming, 0);
  EXPECT_DOUBLE_EQ(measure_contraction(y, only(y, {0, 1, 2, 8}), layout, kExact)->hamming, 0.25);
  EXPECT_DOUBLE_EQ(measure_contraction(y, only(y, {5, 6, 7, 8}), layout, kExact)->hamming, 1);
}

TEST(Contraction, SeveralOfAChunk) {
  const layout::Layout layout = testing::layout_of({{6, 2}});
  const layout::Selection two_of_four{Kind::kTop, 4};
  const std::vector<float> y{1, 2, 3, 4, 6, 5};
  const auto seen = measure_contraction(y, only(y, {1, 3, 4}), layout, two_of_four);
  EXPECT_DOUBLE_EQ(seen->hamming, 1.0 / 3);
  EXPECT_DOUBLE_EQ(seen->exact, (1 + 4 + 25) / 91.0);
}

// A chunk of zeros has no largest entry: whatever was sent of it is as good as anything.
TEST(Contraction, ChunksOfZerosCountForNothing) {
  const layout::Layout layout = testing::layout_of({{4, 2}});
  const std::vector<float> y{0, 0, 2, 1};
  const auto seen = measure_contraction(y, only(y, {2}), layout, kLargest);
  EXPECT_EQ(seen->hamming, 0);
  EXPECT_DOUBLE_EQ(seen->exact, 1.0 / 5);
}

TEST(Contraction, AmongEqualsTheFirstIsTaken) {
  const layout::Layout layout = testing::layout_of({{3, 3}});
  const std::vector<float> y{2, -2, 2};
  EXPECT_EQ(measure_contraction(y, only(y, {0}), layout, kLargest)->hamming, 0);
  EXPECT_EQ(measure_contraction(y, only(y, {1}), layout, kLargest)->hamming, 1);
}

TEST(Contraction, IsNothingWhereThereIsNothingToMeasure) {
  const std::vector<float> y{1, 2};
  EXPECT_FALSE(measure_contraction(y, y, testing::layout_of({{2, 1}}), kLargest));
  EXPECT_FALSE(measure_contraction({}, {}, testing::layout_of({}), kExact));
  const layout::Layout layout = testing::layout_of({{2, 2}});
  const std::vector<float> zeros(2);
  EXPECT_FALSE(measure_contraction(zeros, zeros, layout, kLargest));
  const std::vector<float> broken{1, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_FALSE(measure_contraction(broken, y, layout, kLargest));
  EXPECT_FALSE(measure_contraction(y, broken, layout, kLargest));
}

// Lemma 1 speaks of leaders that miss large entries no sooner than small ones. One that misses the
// largest alone is outside its bound, so that the bound cannot hold for every set.
TEST(Contraction, ASetThatMissesTheLargestAloneIsOverTheBound) {
  const layout::Layout layout = testing::layout_of({{8, 2}});
  const std::vector<float> y{10, 0.1F, 1, 0.1F, 1, 0.1F, 1, 0.1F};
  const auto seen = measure_contraction(y, only(y, {1, 2, 4, 6}), layout, kLargest);
  EXPECT_DOUBLE_EQ(seen->hamming, 0.25);
  EXPECT_GT(seen->measured, seen->bound());
}

// One rank is its own leader, so what a method says that it chooses is what it sends.
TEST(Choice, IsWhatOneRankSends) {
  for (const std::string spec : {"scalecom,rate=10,beta=0.3,decay=0.9",
                                 "scalecom,rate=10,select=exact", "scalecom,rate=4,select=chunk:50",
                                 "weighted,rate=10,a=2,b=0.5", "scalecom,rate=10,groups=1"}) {
    const layout::Layout layout = testing::layout_of({{1003, 10}, {7, 1}, {250, 10}});
    testing::World world(1, spec);
    std::mt19937 random(1);
    for (int step = 0; step < 5; ++step) {
      const auto choice = world.method(0).choice(step);
      ASSERT_TRUE(choice) << spec;
      testing::Gradients gradients = testing::normal(1, layout.elements(), random);
      std::vector<float> u(gradients[0].size());
      for (std::size_t i = 0; i < u.size(); ++i) {
        u[i] = static_cast<float>(choice->gain) * gradients[0][i];
      }
      for (const NamedMemory& memory : world.method(0).memories()) {
        const auto slice =
            std::find_if(layout.slices().begin(), layout.slices().end(),
                         [&](const layout::Slice& one) { return one.name == memory.name; });
        ASSERT_NE(slice, layout.slices().end()) << memory.name;
        for (std::size_t i = 0; i < memory.values.size(); ++i) {
          u[static_cast<std::size_t>(slice->offset) + i] +=
              static_cast<float>(choice->gain * choice->decay) * memory.values[i];
        }
      }
      world.reduce(gradients, layout);
      const auto seen = measure_contraction(u, gradients[0], layout, choice->selection);
      EXPECT_EQ(seen->hamming, 0) << spec;
      EXPECT_NEAR(seen->measured, seen->exact, 1e-6) << spec;
      EXPECT_LT(seen->measured, 1) << spec;
    }
  }
}

TEST(Choice, IsNothingWhereRanksDoNotSendTheSameEntries) {
  for (const std::string spec : {"dense", "half", "topk", "gtopk", "dgc", "adacomp", "powersgd",
                                 "sketched_sgd", "dense,groups=2"}) {
    EXPECT_FALSE(make(spec)->choice(1'000'000)) << spec;
  }
  const auto warms_up = make("scalecom,warmup=10");
  EXPECT_FALSE(warms_up->choice(9));
  EXPECT_TRUE(warms_up->choice(10));
}

}  // namespace
}  // namespace scalecom::methods
