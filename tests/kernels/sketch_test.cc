#include "scalecom/kernels/sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "scalecom/kernels/kernels.h"

namespace scalecom::kernels::sketch {
namespace {

TEST(Sketch, ArithmeticModuloThePrimeDoesNotOverflow) {
  EXPECT_EQ(add_mod(kPrime - 1, kPrime - 1), kPrime - 2);
  EXPECT_EQ(multiply_mod(kPrime - 1, kPrime - 1), 1U) << "(-1) * (-1)";
  EXPECT_EQ(multiply_mod(kPrime - 1, 2), kPrime - 2);
  EXPECT_EQ(multiply_mod(1U << 30, 2), 1U) << "2^31 is 1";
  EXPECT_EQ(multiply_mod(1U << 30, 1U << 30), 1U << 29);
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t a = random() % kPrime;
    const std::uint64_t b = random() % kPrime;
    ASSERT_EQ(multiply_mod(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b)),
              a * b % kPrime);
  }
}

TEST(Sketch, AWalkGoesFromHashToHash) {
  const Hash hash(7, 3);
  std::vector<std::uint32_t> values(2000);
  for (const std::uint64_t first :
       {std::uint64_t{0}, std::uint64_t{12345}, Hash::kStretch - 2000, 3 * Hash::kStretch + 5}) {
    hash.walk(first, values);
    for (std::uint64_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], hash.at(first + i));
  }
}

// A polynomial repeats itself after kPrime elements, and would have these meet in every row.
TEST(Sketch, NoTwoStretchesShareAPolynomial) {
  int meetings = 0;
  for (std::int64_t row = 0; row < 5; ++row) {
    const Hash hash(1, row);
    for (std::uint64_t i = 0; i < 1000; ++i) {
      meetings += static_cast<int>(hash.at(i) == hash.at(i + Hash::kStretch));
      meetings += static_cast<int>(hash.at(i) == hash.at(i + kPrime));
    }
  }
  EXPECT_LT(meetings, 3);
}

TEST(Sketch, PlacesAreThoseOfTheHashesOnEveryInstructionSet) {
  const Hash hash(3, 1);
  for (const Table* table : tables()) {
    for (const std::uint32_t columns :
         {1U, 37U, 24000U, static_cast<std::uint32_t>(kMostColumns)}) {
      for (const std::int64_t count : {1, 7, 8, 17, 64, 1000}) {
        const std::uint64_t first = 4096 * static_cast<std::uint64_t>(count);
        std::vector<std::uint32_t> start(Passes::kStart);
        hash.walk(first, start);
        constexpr std::uint32_t kUntouched = 0xffffffff;
        std::vector<std::uint32_t> places(1001, kUntouched);
        table->sketch.places(start.data(), columns, count, places.data());
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
          ASSERT_EQ(places[i], place_of(hash.at(first + i), columns)) << table->isa << " " << i;
        }
        ASSERT_EQ(places[static_cast<std::size_t>(count)], kUntouched);
      }
    }
  }
}

TEST(Sketch, ColumnsAndSignsAreEvenlyDivided) {
  constexpr std::uint32_t kColumns = 37;
  constexpr std::size_t kElements = 370000;
  std::vector<std::uint32_t> values(kElements);
  Hash(1, 0).walk(0, values);
  std::vector<int> hits(kColumns, 0);
  double signs = 0;
  double pairs = 0;
  double last = 0;
  for (const std::uint32_t value : values) {
    ASSERT_LT(value, kPrime);
    const std::uint32_t place = place_of(value, kColumns);
    ++hits[column_of(place)];
    const double sign = with_sign_of(place, 1.0F);
    signs += sign;
    pairs += sign * last;
    last = sign;
  }
  for (const int count : hits) EXPECT_NEAR(count, 10000, 600);
  EXPECT_NEAR(signs / kElements, 0, 0.01);
  EXPECT_NEAR(pairs / kElements, 0, 0.01);
  EXPECT_EQ(place_of(0, kColumns), 0U);
  EXPECT_EQ(column_of(place_of(kPrime - 1, kColumns)), kColumns - 1);
}

TEST(Sketch, HeavyElementsAreFoundAndTheOthersStaySmall) {
  constexpr std::int64_t kCount = 100000;
  const Size size{5, 4000, 11};
  std::mt19937 random(2);
  std::normal_distribution<float> noise(0, 0.01F);
  std::vector<float> values(kCount);
  for (float& v : values) v = noise(random);
  for (int i = 0; i < 20; ++i) values[random() % kCount] = i % 2 == 0 ? 5.0F : -5.0F;
  std::vector<float> table(static_cast<std::size_t>(size.counters()));
  const std::vector<Part> parts = {{values.data(), 0, 30000},
                                   {values.data() + 30000, 30000, 70000}};
  make(parts, size, table.data());
  std::vector<float> estimates(kCount);
  estimate(table.data(), size, kCount, estimates.data());
  for (std::size_t i = 0; i < kCount; ++i) {
    if (std::abs(values[i]) > 1) {
      EXPECT_NEAR(estimates[i], values[i], 1.0) << i;
    }
  }
  EXPECT_LT(
      std::count_if(estimates.begin(), estimates.end(), [](float e) { return std::abs(e) > 3; }),
      40);
}

TEST(Sketch, OfASumIsTheSumOfSketches) {
  const Size size{4, 50, 3};
  std::vector<float> a(1000), b(1000), sum(1000);
  std::mt19937 random(3);
  for (std::size_t i = 0; i < 1000; ++i) {
    a[i] = static_cast<float>(random() % 100);
    b[i] = static_cast<float>(random() % 100);
    sum[i] = a[i] + b[i];
  }
  const auto sketch_of = [&](const std::vector<float>& values) {
    std::vector<float> table(200, 7.0F);
    const Part part{values.data(), 0, 1000};
    make({&part, 1}, size, table.data());
    return table;
  };
  const auto of_a = sketch_of(a);
  const auto of_b = sketch_of(b);
  const auto of_sum = sketch_of(sum);
  for (std::size_t i = 0; i < 200; ++i) EXPECT_EQ(of_sum[i], of_a[i] + of_b[i]);
}

// Element by element, by sorting.
TEST(Sketch, AnEstimateIsTheMedianOverRows) {
  for (const std::int64_t rows : {1, 2, 3, 5, 8}) {
    const Size size{rows, 30, 5};
    std::vector<float> table(static_cast<std::size_t>(size.counters()));
    std::mt19937 random(4);
    for (float& counter : table) counter = static_cast<float>(static_cast<int>(random() % 41) - 20);
    std::vector<float> estimates(40000);
    estimate(table.data(), size, 40000, estimates.data());
    for (std::size_t i = 0; i < estimates.size(); i += 97) {
      std::vector<float> counters;
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::uint32_t place = place_of(Hash(5, row).at(i), 30);
        counters.push_back(
            with_sign_of(place, table[static_cast<std::size_t>(row * 30 + column_of(place))]));
      }
      std::sort(counters.begin(), counters.end());
      const std::size_t middle = counters.size() / 2;
      const float expected = counters.size() % 2 != 0
                                 ? counters[middle]
                                 : (counters[middle - 1] + counters[middle]) / 2;
      ASSERT_EQ(estimates[i], expected) << i;
    }
  }
}

}  // namespace
}  // namespace scalecom::kernels::sketch
