#include "comparison/growth.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "scalecom/core/error.h"

namespace comparison {
namespace {

/// Of n = 2 to 64, such that what is fitted is y(n), each times 1 + `noise` of a normal number.
std::vector<Busiest> series(const std::function<double(double)>& y, double noise = 0,
                            unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> draw;
  std::vector<Busiest> figures;
  for (const int n : {2, 4, 8, 16, 32, 64}) {
    const double ring = 2.0 * (n - 1) / n;
    figures.push_back({n, y(n) * ring * (1 + noise * draw(random))});
  }
  return figures;
}

double constant(double /*n*/) {
  return 60'000;
}
double logarithmic(double n) {
  return 20'000 + 50'000 * std::log2(n);
}
double linear(double n) {
  return 2'000 + 50'000 * n;
}

TEST(Growth, ExactSeriesAreTold) {
  EXPECT_EQ(fit_growth(series(constant)), Growth::kConstant);
  EXPECT_EQ(fit_growth(series(logarithmic)), Growth::kLog);
  EXPECT_EQ(fit_growth(series(linear)), Growth::kLinear);
}

TEST(Growth, NoiseOfAFewPercentChangesNothing) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    EXPECT_EQ(fit_growth(series(constant, 0.01, seed)), Growth::kConstant) << seed;
    EXPECT_EQ(fit_growth(series(logarithmic, 0.05, seed)), Growth::kLog) << seed;
    EXPECT_EQ(fit_growth(series(linear, 0.05, seed)), Growth::kLinear) << seed;
  }
}

// What rounding to whole bytes and shares of unequal length does is no growth.
TEST(Growth, ARiseOfLessThanATwentiethIsNone) {
  EXPECT_EQ(fit_growth(series([](double n) { return 10'000 + 1.0 * n; })), Growth::kConstant);
  EXPECT_EQ(fit_growth(series([](double n) { return 10'000 + 50 * std::log2(n); })),
            Growth::kConstant);
  EXPECT_EQ(fit_growth(series([](double n) { return 10'000 + 10.0 * n; })), Growth::kLinear);
}

// Of the fit at the fewest ranks, 2.
TEST(Growth, ATwentiethIsTheLeastRise) {
  EXPECT_EQ(fit_growth(series([](double n) { return 10'000 + 8.07 * n; })), Growth::kConstant);
  EXPECT_EQ(fit_growth(series([](double n) { return 10'000 + 8.09 * n; })), Growth::kLinear);
}

// Figures that go up and down by 8 around a line vary for 86 % as it does, by 14 for 63 %.
TEST(Growth, AFitExplainsFourFifths) {
  const auto waves = [](double by) {
    return series(
        [by](double n) { return 100 + n + (static_cast<int>(std::log2(n)) % 2 == 1 ? by : -by); });
  };
  EXPECT_EQ(fit_growth(waves(8)), Growth::kLinear);
  EXPECT_EQ(fit_growth(waves(14)), Growth::kConstant);
}

TEST(Growth, AFallIsNone) {
  EXPECT_EQ(fit_growth(series([](double n) { return 100'000 - 1'000 * n; })), Growth::kConstant);
  EXPECT_EQ(fit_growth(series([](double n) { return 100'000 / n; })), Growth::kConstant);
}

// A tree's root receives one message a round, over 2(n-1)/n: not quite a + b log n.
TEST(Growth, ATreeGrowsAsTheLogarithm) {
  std::vector<Busiest> figures;
  for (const int n : {2, 4, 8, 16, 32, 64}) figures.push_back({n, 50'000 * std::log2(n)});
  EXPECT_EQ(fit_growth(figures), Growth::kLog);
}

// Every rank gathers what all the others chose.
TEST(Growth, AGatherGrowsAsTheRanks) {
  std::vector<Busiest> figures;
  for (const int n : {2, 4, 8, 16, 32, 64}) figures.push_back({n, 2 * 50'000.0 * (n - 1)});
  EXPECT_EQ(fit_growth(figures), Growth::kLinear);
}

TEST(Growth, NothingIsConstant) {
  EXPECT_EQ(fit_growth(series([](double) { return 0; })), Growth::kConstant);
}

TEST(Growth, TooFewNumbersOfRanksAreRefused) {
  using scalecom::core::UsageError;
  EXPECT_THROW(fit_growth({}), UsageError);
  EXPECT_THROW(fit_growth(std::vector<Busiest>{{2, 1}, {4, 1}, {4, 1}}), UsageError);
  EXPECT_THROW(fit_growth(std::vector<Busiest>{{1, 0}, {2, 1}, {4, 1}}), UsageError);
}

TEST(Growth, IsNamedAsInTheTable) {
  EXPECT_STREQ(to_string(Growth::kConstant), "constant");
  EXPECT_STREQ(to_string(Growth::kLog), "log n");
  EXPECT_STREQ(to_string(Growth::kLinear), "n");
}

}  // namespace
}  // namespace comparison
