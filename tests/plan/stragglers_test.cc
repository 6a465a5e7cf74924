#include "scalecom/plan/stragglers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace scalecom::plan {
namespace {

TEST(Stragglers, OneWorkerOrNoDeviationWaitsForNobody) {
  EXPECT_EQ(slowest_of(1, 0.5), 1);
  EXPECT_EQ(slowest_of(1000, 0), 1);
}

TEST(Stragglers, AgreeWithDrawnSteps) {
  for (const int workers : {2, 16, 128}) {
    constexpr double kDeviation = 0.2;
    const double sigma = std::sqrt(std::log1p(kDeviation * kDeviation));
    std::mt19937 random(7);
    std::lognormal_distribution<double> draw(-sigma * sigma / 2, sigma);
    constexpr int kSteps = 20000;
    double sum = 0;
    for (int step = 0; step < kSteps; ++step) {
      double slowest = 0;
      for (int worker = 0; worker < workers; ++worker) slowest = std::max(slowest, draw(random));
      sum += slowest;
    }
    EXPECT_NEAR(slowest_of(workers, kDeviation), sum / kSteps, 0.005) << workers;
  }
}

TEST(Stragglers, GrowWithWorkersAndDeviation) {
  double before = 1;
  for (const int workers : {2, 8, 64, 1024, 1 << 20}) {
    EXPECT_GT(slowest_of(workers, 0.1), before);
    before = slowest_of(workers, 0.1);
  }
  EXPECT_GT(slowest_of(8, 0.2), slowest_of(8, 0.1));
}

}  // namespace
}  // namespace scalecom::plan
