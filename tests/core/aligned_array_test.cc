#include "scalecom/core/aligned_array.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <utility>

namespace scalecom::core {
namespace {

class Sizes : public testing::TestWithParam<std::int64_t> {};

TEST_P(Sizes, IsZeroAndAligned) {
  AlignedArray<float> array(GetParam());
  EXPECT_EQ(array.size(), GetParam());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.data()) % 64, 0U);
  EXPECT_TRUE(std::all_of(array.begin(), array.end(), [](float x) { return x == 0; }));
}

TEST_P(Sizes, HoldsWhatIsWritten) {
  AlignedArray<std::int32_t> array(GetParam());
  for (std::int64_t i = 0; i < array.size(); ++i) array[i] = static_cast<std::int32_t>(i);
  for (std::int64_t i = 0; i < array.size(); ++i) ASSERT_EQ(std::as_const(array)[i], i);
}

// Around the size from which arrays are mapped on their own.
INSTANTIATE_TEST_SUITE_P(All, Sizes,
                         testing::Values(0, 1, 15, 16, 17, (1 << 18) - 1, 1 << 18, (1 << 18) + 1,
                                         3 << 20));

TEST(AlignedArray, MovesWithoutCopying) {
  AlignedArray<float> first(100);
  first[7] = 3;
  const float* data = first.data();
  AlignedArray<float> second(std::move(first));
  EXPECT_EQ(second.data(), data);
  AlignedArray<float> third(5);
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.size(), 100);
  EXPECT_EQ(third[7], 3);
  AlignedArray<float>& same = third;
  third = std::move(same);
  EXPECT_EQ(third[7], 3);
}

TEST(AlignedArray, RefusesSizesThatNoMemoryHolds) {
  using Limits = std::numeric_limits<std::int64_t>;
  for (const std::int64_t size :
       {std::int64_t{-1}, Limits::min(), Limits::max(), Limits::max() / 4 + 1, Limits::max() / 4}) {
    EXPECT_THROW(AlignedArray<float>{size}, std::bad_alloc) << size;
  }
}

}  // namespace
}  // namespace scalecom::core
