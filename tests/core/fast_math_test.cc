#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "scalecom/core/arithmetic.h"
#include "tests/methods/ranks.h"

// What is compiled with -ffast-math, and with the flags of the library after it.
namespace scalecom {
namespace {

TEST(FastMath, NumbersThatAreNotFiniteAreSeen) {
  const volatile float infinity = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(infinity));
  EXPECT_TRUE(std::isnan(infinity - infinity));
}

TEST(FastMath, SumsKeepTheirOrder) {
  const volatile float large = 1e8F;
  const volatile float small = 1;
  const float a = large;
  const float b = small;
  EXPECT_EQ((a + b) - a, 0.0F);
}

// The linker has the program flush subnormal numbers to zero.
TEST(FastMath, NothingIsLost) {
  methods::testing::World world(2, "scalecom,rate=10,beta=0.1,check=conserve");
  const layout::Layout layout = methods::testing::layout_of({{1000, 10}});
  for (int step = 0; step < 3; ++step) {
    methods::testing::Gradients gradients(2);
    {
      const core::DefaultArithmetic arithmetic;
      for (auto& one : gradients) {
        for (int i = 0; i < 1000; ++i) one.push_back(std::ldexp(static_cast<float>(i), -138));
      }
    }
    EXPECT_NO_THROW(world.reduce(gradients, layout));
  }
}

}  // namespace
}  // namespace scalecom
