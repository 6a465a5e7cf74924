#include "scalecom/methods/dense.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/methods/ranks.h"

namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::layout_of;
using testing::World;

TEST(Dense, IsTheMeanScaledBeforeTheSum) {
  std::mt19937 random(1);
  for (const int size : {1, 2, 3, 5, 8}) {
    for (const std::int64_t elements : {0, 1, 7, 1000, 200001}) {
      World world(size, "dense");
      Gradients gradients = testing::normal(size, elements, random);
      std::vector<float> expected(static_cast<std::size_t>(elements));
      const float factor = 1.0F / static_cast<float>(size);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] = gradients[0][i] * factor;
        for (std::size_t r = 1; r < gradients.size(); ++r) expected[i] += gradients[r][i] * factor;
      }
      world.reduce(gradients, layout_of({{elements, 1}}));
      for (const auto& result : gradients) EXPECT_TRUE(testing::same_bits(result, expected));
    }
  }
}

TEST(Dense, NotFiniteIsSeenEverywhere) {
  World world(3, "dense");
  Gradients gradients(3, std::vector<float>(10, 1.0F));
  gradients[1][4] = std::nanf("");
  gradients[2][7] = -INFINITY;
  world.reduce(gradients, layout_of({{10, 1}}));
  for (const auto& result : gradients) {
    for (const float value : result) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(Dense, SixteenBitGradientsAreSummedInFp32) {
  for (const core::DType type : {core::DType::kFloat16, core::DType::kBFloat16}) {
    World world(3, "dense");
    std::vector<std::vector<std::uint16_t>> gradients(3, std::vector<std::uint16_t>(2000));
    std::vector<std::uint16_t> expected(2000);
    std::mt19937 random(4);
    std::normal_distribution<float> draw;
    for (std::size_t i = 0; i < 2000; ++i) {
      float sum = 0;
      for (auto& rank : gradients) {
        rank[i] = core::to_bits16(type, draw(random));
        sum += core::from_bits16(type, rank[i]) * (1.0F / 3.0F);
      }
      expected[i] = core::to_bits16(type, sum);
    }
    const layout::Layout layout = layout_of({{2000, 1}});
    world.run([&](int rank) {
      world.reduce_at(rank, {gradients[static_cast<std::size_t>(rank)].data(), 2000, type}, layout);
    });
    for (const auto& result : gradients) EXPECT_EQ(result, expected);
  }
}

}  // namespace
}  // namespace scalecom::methods
