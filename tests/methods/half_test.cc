#include "scalecom/methods/half.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/methods/ranks.h"

namespace scalecom::methods {
namespace {

using testing::Gradients;
using testing::layout_of;
using testing::World;

TEST(Half, RoundsEachValueSumsInFp32AndRoundsTheMean) {
  std::mt19937 random(1);
  for (const core::DType type : {core::DType::kFloat16, core::DType::kBFloat16}) {
    for (const int size : {1, 2, 3, 5}) {
      for (const std::int64_t elements : {0, 1, 2, 999, 140001}) {
        World world(size, std::string("half,values=") + core::to_string(type));
        Gradients gradients = testing::normal(size, elements, random);
        std::vector<float> expected(static_cast<std::size_t>(elements));
        for (std::size_t i = 0; i < expected.size(); ++i) {
          float sum = core::round_to(type, gradients[0][i]);
          for (std::size_t r = 1; r < gradients.size(); ++r) {
            sum += core::round_to(type, gradients[r][i]);
          }
          expected[i] = core::round_to(type, sum * (1.0F / static_cast<float>(size)));
        }
        world.reduce(gradients, layout_of({{elements, 1}}));
        for (const auto& result : gradients) EXPECT_TRUE(testing::same_bits(result, expected));
      }
    }
  }
}

TEST(Half, NotFiniteIsSeenEverywhere) {
  World world(2, "half,values=fp16");
  Gradients gradients(2, std::vector<float>(10, 1.0F));
  gradients[1][4] = std::nanf("");
  world.reduce(gradients, layout_of({{10, 1}}));
  for (const auto& result : gradients) {
    for (const float value : result) EXPECT_TRUE(std::isnan(value));
  }
}

}  // namespace
}  // namespace scalecom::methods
