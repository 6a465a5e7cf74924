// The reference kernels against statements that do not share their code.
#include "scalecom/kernels/reference/reference.h"

#include <numeric>

#include "tests/kernels/fixture.h"

namespace scalecom::kernels::testing {
namespace {

const Table& table() {
  return reference::table();
}

TEST(Reference, AccumulateIsALowPassFilter) {
  for (const DType dtype : kTypes) {
    Problem problem(dtype, 10007, Data::kNormal, 1);
    const Problem before(problem);
    const Filter filter{0.3F, 0.9F};
    EXPECT_TRUE(table().accumulate(problem.tensor(), filter, 0, 10007));
    for (std::int64_t i = 0; i < 10007; ++i) {
      const double g = before.grad(i);
      const double m = before.memory[i];
      const double exact = double{filter.beta} * g + double{filter.decay} * m;
      // One rounding of decay * m and one of the sum.
      ASSERT_NEAR(problem.memory[i], exact, 1.2e-7 * (std::abs(exact) + std::abs(m)));
      ASSERT_EQ(problem.grad(i), before.grad(i));
    }
  }
}

TEST(Reference, AGradientThatIsNotFiniteCountsAsZero) {
  const float kBad[] = {std::numeric_limits<float>::infinity(),
                        -std::numeric_limits<float>::infinity(),
                        std::numeric_limits<float>::quiet_NaN()};
  for (const DType dtype : kTypes) {
    for (const float bad : kBad) {
      Problem problem(dtype, 10, Data::kNormal, 2);
      problem.set_grad(4, bad);
      Problem with_zero(problem);
      with_zero.set_grad(4, 0);
      EXPECT_FALSE(table().accumulate(problem.tensor(), {0.1F, 1}, 0, 10));
      EXPECT_TRUE(table().accumulate(with_zero.tensor(), {0.1F, 1}, 0, 10));
      problem.expect_same(with_zero);
    }
  }
}

TEST(Reference, ASumThatOverflowsIsReported) {
  Problem problem(DType::kFloat32, 3, Data::kZero, 2);
  problem.grad32[1] = 3e38F;
  problem.memory[1] = 3e38F;
  EXPECT_FALSE(table().accumulate(problem.tensor(), {1, 1}, 0, 3));
  EXPECT_EQ(problem.memory[1], 3e38F);
  EXPECT_EQ(problem.grad32[1], 0);
}

// What lead takes, from u computed here and a stable sort.
TEST(Reference, LeadTakesTheFirstOfTheLargest) {
  for (const Data data : {Data::kNormal, Data::kTies, Data::kZero}) {
    const std::int64_t length = 1003;
    const std::int64_t chunk = 25;
    const std::int64_t chunks = chunks_of(length, chunk);
    const Filter filter{0.5F, 1};
    Problem problem(DType::kFloat32, length, data, 3);
    const Problem before(problem);
    Items items(chunks);
    EXPECT_TRUE(
        table().lead(problem.tensor(), filter, DType::kFloat32, chunk, 0, chunks, items.taken()));
    for (std::int64_t c = 0; c < chunks; ++c) {
      const auto size = static_cast<std::size_t>(std::min(chunk, length - c * chunk));
      std::vector<float> us;
      std::vector<float> memories;
      for (std::size_t k = 0; k < size; ++k) {
        const std::int64_t i = c * chunk + static_cast<std::int64_t>(k);
        memories.push_back(std::fma(0.5F, before.grad32[i], before.memory[i]));
        us.push_back(std::fma(0.5F, before.grad32[i], memories.back()));
      }
      std::vector<std::size_t> order(size);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](auto a, auto b) { return std::abs(us[a]) > std::abs(us[b]); });
      const std::size_t best = order[0];
      ASSERT_EQ(items.positions[c], c * chunk + static_cast<std::int64_t>(best));
      ASSERT_EQ(items.values[c], us[best]);
      ASSERT_EQ(items.before[c], memories[best]);
      for (std::size_t k = 0; k < size; ++k) {
        const float kept = k == best ? std::fma(-0.5F, us[k], memories[k]) : memories[k];
        ASSERT_EQ(problem.memory[c * chunk + static_cast<std::int64_t>(k)], kept);
      }
    }
    for (std::int64_t i = 0; i < length; ++i) ASSERT_EQ(problem.grad32[i], 0);
  }
}

// Whole numbers add without rounding: at beta 1 what went in is what was sent plus the memory.
TEST(Reference, NothingIsLostAtBetaOne) {
  for (const DType values : kTypes) {
    const std::int64_t length = 5000;
    const std::int64_t chunk = 16;
    const std::int64_t chunks = chunks_of(length, chunk);
    Problem problem(DType::kFloat32, length, Data::kZero, 4);
    std::vector<double> given(static_cast<std::size_t>(length));
    std::vector<double> sent(static_cast<std::size_t>(length));
    std::mt19937 random(5);
    for (int step = 0; step < 20; ++step) {
      for (std::int64_t i = 0; i < length; ++i) {
        problem.grad32[i] = static_cast<float>(static_cast<int>(random() % 2001) - 1000);
        given[static_cast<std::size_t>(i)] += problem.grad32[i];
      }
      Items items(chunks);
      EXPECT_TRUE(table().lead(problem.tensor(), {1, 1}, values, chunk, 0, chunks, items.taken()));
      for (std::int64_t c = 0; c < chunks; ++c) sent[items.positions[c]] += items.values[c];
    }
    for (std::int64_t i = 0; i < length; ++i) {
      const auto k = static_cast<std::size_t>(i);
      ASSERT_EQ(given[k], sent[k] + problem.memory[i]);
    }
  }
}

TEST(Reference, WhatDoesNotFitTheValueTypeStaysInTheMemory) {
  Problem problem(DType::kFloat32, 1, Data::kZero, 1);
  problem.grad32[0] = 100000;
  Items items(1);
  EXPECT_TRUE(table().lead(problem.tensor(), {1, 1}, DType::kFloat16, 1, 0, 1, items.taken()));
  EXPECT_EQ(items.values[0], 65504);
  EXPECT_EQ(problem.memory[0], 100000 - 65504);
}

TEST(Reference, FollowIsLeadWithTheLeadersPositions) {
  for (const DType dtype : kTypes) {
    Problem led(dtype, 1009, Data::kSpecial, 6);
    Problem followed(led);
    Items items(11);
    const Filter filter{0.1F, 1};
    const bool finite =
        table().lead(led.tensor(), filter, DType::kBFloat16, 100, 0, 11, items.taken());
    Items given(11);
    std::copy_n(items.positions.data(), 11, given.positions.data());
    EXPECT_EQ(
        table().follow(followed.tensor(), filter, DType::kBFloat16, 0, 1009, 11, given.taken()),
        finite);
    followed.expect_same(led);
    given.expect_same(items);
  }
}

TEST(Reference, PutOverflowsToInfinityInAGradientOf16Bits) {
  Problem problem(DType::kFloat16, 2, Data::kZero, 1);
  const std::uint32_t position = 1;
  const float value = -1e6F;
  table().put(problem.tensor(), 1, &position, &value);
  EXPECT_EQ(problem.grad(1), -std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace scalecom::kernels::testing
