#include "scalecom/kernels/momentum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace scalecom::kernels {
namespace {

TEST(Momentum, AccumulatesAsStated) {
  for (const bool nesterov : {false, true}) {
    std::vector<float> grad(5000), memory(5000), velocity(5000);
    for (std::size_t i = 0; i < 5000; ++i) {
      grad[i] = std::sin(static_cast<float>(i));
      memory[i] = std::cos(static_cast<float>(3 * i));
      velocity[i] = std::cos(static_cast<float>(7 * i));
    }
    const auto before = memory;
    const auto speed = velocity;
    const Tensor tensor{grad.data(), core::DType::kFloat32, memory.data(), 5000};
    EXPECT_TRUE(accumulate_momentum(tensor, velocity.data(), {0.9F, nesterov}, 0.3F, 10, 4990));
    for (std::size_t i = 0; i < 5000; ++i) {
      const bool inside = i >= 10 && i < 4990;
      const float g = grad[i] * 0.3F;
      const float u = nesterov ? 0.9F * (speed[i] + g) : 0.9F * speed[i] + g;
      ASSERT_EQ(velocity[i], inside ? u : speed[i]);
      ASSERT_EQ(memory[i], inside ? before[i] + (nesterov ? u + g : u) : before[i]);
    }
  }
}

TEST(Momentum, KeepsWhatItHasWhereItWouldNotBeFinite) {
  const float big = std::numeric_limits<float>::max();
  std::vector<float> grad{1, NAN, -INFINITY, big, 1};
  std::vector<float> memory{1, 2, 3, 4, 5};
  std::vector<float> velocity{1, 2, 3, big, 1};
  const Tensor tensor{grad.data(), core::DType::kFloat32, memory.data(), 5};
  EXPECT_FALSE(accumulate_momentum(tensor, velocity.data(), {0.5F, false}, 1.0F, 0, 5));
  EXPECT_EQ(memory, (std::vector<float>{2.5F, 2, 3, 4, 6.5F}));
  EXPECT_EQ(velocity, (std::vector<float>{1.5F, 2, 3, big, 1.5F}));
  std::vector<float> numbers{1, NAN, 2};
  std::vector<float> speeds{2, 3, -2};
  EXPECT_FALSE(apply_momentum(numbers.data(), speeds.data(), 3, {0.5F, true}, 0.25F));
  EXPECT_EQ(speeds, (std::vector<float>{1.5F, 3, 0}));
  EXPECT_EQ(numbers[0], 2.5F * 0.25F);
  EXPECT_EQ(numbers[2], 2 * 0.25F);
}

TEST(SumOfSquares, IsThatOfTheRange) {
  std::vector<float> grad(5000, 0x1p100F);  // whose squares fp32 could not hold
  EXPECT_EQ(sum_of_squares(grad.data(), core::DType::kFloat32, 1, 4999), 4998 * 0x1p200);
  EXPECT_EQ(sum_of_squares(grad.data(), core::DType::kFloat32, 7, 7), 0);
}

}  // namespace
}  // namespace scalecom::kernels
