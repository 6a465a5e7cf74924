#include "scalecom/core/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "scalecom/core/error.h"

namespace scalecom::core {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A 16-bit format stated by its definition, in doubles, which hold all of its numbers exactly.
struct Format {
  DType type;
  int exponent_bits;
  int mantissa_bits;

  std::uint16_t infinity() const {
    return static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits);
  }
  // The number that a pattern without its sign stands for; infinity's is the power of two that
  // would come next, which is what rounding goes by.
  double magnitude(std::uint16_t bits) const {
    const int exponent = bits >> mantissa_bits;
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    const int bias = (1 << (exponent_bits - 1)) - 1;
    if (exponent == 0) return std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
  }
};

class Formats : public testing::TestWithParam<Format> {
 protected:
  const Format format = GetParam();
  std::uint16_t bits_of(float value) const { return to_bits16(format.type, value); }
  float value_of(int bits) const {
    return from_bits16(format.type, static_cast<std::uint16_t>(bits));
  }
};

INSTANTIATE_TEST_SUITE_P(All, Formats,
                         testing::Values(Format{DType::kFloat16, 5, 10},
                                         Format{DType::kBFloat16, 8, 7}),
                         [](const auto& info) { return to_string(info.param.type); });

TEST_P(Formats, EveryPatternIsItsNumber) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const auto positive = static_cast<std::uint16_t>(bits & 0x7fff);
    const float value = value_of(bits);
    ASSERT_EQ(std::signbit(value), bits >= 0x8000) << bits;
    if (positive > format.infinity()) {
      ASSERT_TRUE(std::isnan(value)) << bits;
    } else if (positive == format.infinity()) {
      ASSERT_EQ(std::abs(value), kInfinity) << bits;
    } else {
      ASSERT_EQ(std::abs(static_cast<double>(value)), format.magnitude(positive)) << bits;
    }
  }
}

TEST_P(Formats, EveryNumberComesBackAsItsPattern) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7fff) > format.infinity()) continue;
    ASSERT_EQ(bits_of(value_of(bits)), bits);
  }
}

TEST_P(Formats, NaNsStayQuietNaNsOfTheirSign) {
  const int quiet = 1 << (format.mantissa_bits - 1);
  for (const std::uint32_t payload : {1U, 0x1000U, 0x2000U, 0x400000U, 0x7fffffU}) {
    for (const std::uint32_t sign : {0U, 0x80000000U}) {
      const int bits = bits_of(std::bit_cast<float>(sign | 0x7f800000U | payload));
      EXPECT_GT(bits & 0x7fff, format.infinity());
      EXPECT_NE(bits & quiet, 0);
      EXPECT_EQ(bits >= 0x8000, sign != 0);
    }
  }
}

// Every point half way between two neighbours, and the floats right beside it.
TEST_P(Formats, HalfWaysGoToTheEvenNeighbour) {
  for (std::uint16_t low = 0; low < format.infinity(); ++low) {
    const auto high = static_cast<std::uint16_t>(low + 1);
    const double middle = (format.magnitude(low) + format.magnitude(high)) / 2;
    const auto half_way = static_cast<float>(middle);
    ASSERT_EQ(static_cast<double>(half_way), middle) << "a float holds every half way";
    ASSERT_EQ(bits_of(half_way), low % 2 == 0 ? low : high) << low;
    ASSERT_EQ(bits_of(std::nextafter(half_way, 0.0F)), low) << low;
    ASSERT_EQ(bits_of(std::nextafter(half_way, kInfinity)), high) << low;
    ASSERT_EQ(bits_of(-half_way), bits_of(half_way) | 0x8000) << low;
  }
}

TEST_P(Formats, AnyNumberGoesToTheNearest) {
  std::mt19937 random(7);
  for (int i = 0; i < 300000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()) & 0x7fffffffU);
    if (!std::isfinite(value)) continue;
    const std::uint16_t bits = bits_of(value);
    ASSERT_LE(bits, format.infinity());
    const double miss = std::abs(value - format.magnitude(bits));
    if (bits > 0) {
      ASSERT_LE(miss, std::abs(value - format.magnitude(static_cast<std::uint16_t>(bits - 1))));
    }
    if (bits < format.infinity()) {
      ASSERT_LE(miss, std::abs(value - format.magnitude(static_cast<std::uint16_t>(bits + 1))));
    }
  }
}

TEST_P(Formats, RoundToKeepsFiniteNumbersFinite) {
  const float largest = value_of(format.infinity() - 1);
  for (const float value :
       {std::nextafter(largest, kInfinity), std::numeric_limits<float>::max()}) {
    EXPECT_EQ(round_to(format.type, value), largest);
    EXPECT_EQ(round_to(format.type, -value), -largest);
  }
  EXPECT_EQ(round_to(format.type, largest), largest);
  EXPECT_EQ(round_to(format.type, kInfinity), kInfinity);
  EXPECT_EQ(round_to(format.type, -kInfinity), -kInfinity);
  EXPECT_TRUE(std::isnan(round_to(format.type, std::nanf(""))));
}

TEST_P(Formats, RoundToGivesNumbersOfTheFormat) {
  std::mt19937 random(8);
  for (int i = 0; i < 100000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(value)) continue;
    const float rounded = round_to(format.type, value);
    ASSERT_EQ(value_of(bits_of(rounded)), rounded);
    ASSERT_EQ(round_to(format.type, rounded), rounded);
    ASSERT_EQ(std::signbit(rounded), std::signbit(value));
  }
}

TEST(DType, Float32PassesUntouched) {
  for (const float value : {0.0F, -0.0F, 1e-45F, 3.4e38F, kInfinity}) {
    const float rounded = round_to(DType::kFloat32, value);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(rounded), std::bit_cast<std::uint32_t>(value));
  }
}

TEST(DType, SizesAreInBytes) {
  EXPECT_EQ(size_of(DType::kFloat32), 4);
  EXPECT_EQ(size_of(DType::kFloat16), 2);
  EXPECT_EQ(size_of(DType::kBFloat16), 2);
}

}  // namespace
}  // namespace scalecom::core
