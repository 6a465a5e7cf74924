#include "scalecom/kernels/largest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace scalecom::kernels {
namespace {

std::vector<std::uint32_t> by_sorting(const std::vector<float>& numbers, std::size_t keep) {
  std::vector<std::uint32_t> order(numbers.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::abs(numbers[a]) > std::abs(numbers[b]);
  });
  order.resize(keep);
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<std::uint32_t> selected(const std::vector<float>& numbers, std::size_t keep) {
  std::vector<std::uint32_t> positions(keep);
  select_largest(numbers.data(), static_cast<std::int64_t>(numbers.size()),
                 static_cast<std::int64_t>(keep), positions.data());
  return positions;
}

TEST(SelectLargest, EqualsSorting) {
  std::mt19937 random(1);
  std::normal_distribution<float> draw;
  for (const std::size_t length : {1U, 2U, 31U, 33U, 4095U, 4096U, 70000U, 300000U}) {
    std::vector<float> numbers(length);
    for (float& number : numbers) number = draw(random);
    for (const std::size_t keep :
         {std::size_t{1}, length / 1000, length / 100, length / 2, length}) {
      EXPECT_EQ(selected(numbers, keep), by_sorting(numbers, keep)) << length << " " << keep;
    }
  }
}

// Arrays that mislead a sample, or that have nothing but ties.
TEST(SelectLargest, NoArrayIsSpecial) {
  constexpr std::size_t kLength = 200000;
  std::vector<std::vector<float>> arrays;
  arrays.emplace_back(kLength, 0.0F);
  arrays.emplace_back(kLength, -3.0F);
  std::vector<float> numbers(kLength);
  // Large wherever a stride of any power of two up to 64 looks, and at the places between.
  for (std::size_t i = 0; i < kLength; ++i) numbers[i] = i % 16 == 0 ? 5.0F : 1.0F;
  arrays.push_back(numbers);
  for (std::size_t i = 0; i < kLength; ++i) numbers[i] = i % 16 == 0 ? 0.0F : 1.0F;
  arrays.push_back(numbers);
  for (std::size_t i = 0; i < kLength; ++i) numbers[i] = static_cast<float>(i);
  arrays.push_back(numbers);
  std::fill(numbers.begin(), numbers.end(), -0.0F);
  numbers[kLength - 1] = 1e-45F;
  arrays.push_back(numbers);
  for (const auto& array : arrays) {
    for (const std::size_t keep : {1U, 7U, 2000U, 20000U}) {
      EXPECT_EQ(selected(array, keep), by_sorting(array, keep)) << array[0] << " " << keep;
    }
  }
}

TEST(KeyReached, IsThatOfTheSample) {
  const std::vector<float> numbers{9, -1, 8, 2, -7, 3, 6};
  EXPECT_EQ(key_reached(numbers.data(), 7, 0, 1, 1), magnitude_key(9));
  EXPECT_EQ(key_reached(numbers.data(), 7, 0, 1, 7), magnitude_key(1));
  EXPECT_EQ(key_reached(numbers.data(), 7, 0, 2, 3), magnitude_key(7)) << "9 8 7 6";
  EXPECT_EQ(key_reached(numbers.data(), 7, 1, 2, 2), magnitude_key(-2)) << "1 2 3";
}

TEST(PositionsFrom, AreAllThatReach) {
  std::vector<float> numbers(100000, 0.5F);
  for (const std::size_t i : {0U, 31U, 32U, 65535U, 65536U, 99999U}) numbers[i] = -2.0F;
  EXPECT_EQ(positions_from(numbers.data(), 100000, magnitude_key(2)),
            (std::vector<std::uint32_t>{0, 31, 32, 65535, 65536, 99999}));
  EXPECT_TRUE(positions_from(numbers.data(), 100000, magnitude_key(2.5F)).empty());
  EXPECT_TRUE(positions_from(numbers.data(), 0, 0).empty());
}

}  // namespace
}  // namespace scalecom::kernels
