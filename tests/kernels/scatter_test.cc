#include "scalecom/kernels/scatter.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace scalecom::kernels {
namespace {

struct Sent {
  std::vector<std::uint32_t> positions;
  std::vector<float> values;
  Given given() const {
    return {positions.data(), values.data(), static_cast<std::int64_t>(positions.size())};
  }
};

TEST(ScatterSum, AddsInTheOrderOfRanksAndZeroesTheRest) {
  std::vector<float> grad(10000, 7.0F);
  const Sent a{{0, 4095, 4096, 9999}, {1e8F, 2, 3, 4}};
  const Sent b{{0, 5}, {1, -0.0F}};
  const Sent c{{0, 4096}, {-1e8F, 5}};
  const std::vector<Given> ranks{a.given(), b.given(), c.given()};
  const Tensor tensor{grad.data(), core::DType::kFloat32, nullptr, 10000};
  EXPECT_TRUE(scatter_sum(tensor, 0, 10000, ranks, 0.5F));
  std::vector<float> expected(10000, 0.0F);
  expected[0] = (0.5e8F + 0.5F) - 0.5e8F;  // not what another order gives
  expected[4095] = 1;
  expected[4096] = 4;
  expected[9999] = 2;
  EXPECT_EQ(grad, expected);
  EXPECT_NE(expected[0], 0.5F);
}

TEST(ScatterSum, OfABlockTouchesNothingElse) {
  for (const core::DType type :
       {core::DType::kFloat32, core::DType::kFloat16, core::DType::kBFloat16}) {
    std::vector<std::uint32_t> storage(100, 0x3c003c00U);
    const std::vector<std::uint32_t> before = storage;
    const Sent a{{3, 10, 49, 50, 99}, {1, 2, 3, 4, 5}};
    const std::vector<Given> ranks{a.given()};
    const Tensor tensor{storage.data(), type, nullptr, 100};
    EXPECT_TRUE(scatter_sum(tensor, 10, 50, ranks, 1.0F));
    std::vector<float> wide(100);
    table().load(storage.data(), type, 100, 1.0F, wide.data());
    std::vector<float> outside(100);
    table().load(before.data(), type, 100, 1.0F, outside.data());
    for (std::size_t i = 0; i < 100; ++i) {
      const float expected = i < 10 || i >= 50 ? outside[i] : i == 10 ? 2.0F : i == 49 ? 3.0F : 0;
      EXPECT_EQ(wide[i], expected) << i;
    }
  }
}

TEST(ScatterSum, TellsOfASumThatIsNotFinite) {
  std::vector<float> grad(4);
  const float big = std::numeric_limits<float>::max();
  const Sent a{{1}, {big}};
  const std::vector<Given> ranks{a.given(), a.given()};
  const Tensor tensor{grad.data(), core::DType::kFloat32, nullptr, 4};
  EXPECT_FALSE(scatter_sum(tensor, 0, 4, ranks, 1.0F));
  EXPECT_TRUE(scatter_sum(tensor, 0, 4, ranks, 0.5F));
}

}  // namespace
}  // namespace scalecom::kernels
