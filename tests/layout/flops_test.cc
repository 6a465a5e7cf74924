#include "scalecom/layout/flops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace scalecom::layout {
namespace {

std::int64_t sent(const std::vector<Share>& shares, const std::vector<std::int64_t>& rates) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    total += (shares[i].elements + rates[i] - 1) / rates[i];
  }
  return total;
}

std::int64_t elements(const std::vector<Share>& shares) {
  std::int64_t total = 0;
  for (const Share& share : shares) total += share.elements;
  return total;
}

std::vector<std::int64_t> rates_at(const std::vector<Share>& shares, double c) {
  std::vector<std::int64_t> rates;
  for (const Share& share : shares) {
    const std::int64_t rate = std::llround(std::clamp(c / share.flops_per_gradient, 1.0, 1000.0));
    rates.push_back(share.elements < rate ? 1 : rate);
  }
  return rates;
}

// Layers large enough that none turns dense by being short.
std::vector<Share> random_model(std::mt19937& random) {
  std::vector<Share> shares(1 + random() % 40);
  for (Share& share : shares) {
    share.elements = 2000 + static_cast<std::int64_t>(random() % 200000);
    share.flops_per_gradient = std::ldexp(1.0 + (random() % 1000) / 1000.0, random() % 10);
  }
  return shares;
}

TEST(FlopsRates, SendsWhatTheRateSays) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const std::vector<Share> shares = random_model(random);
    const double rate = 2 + random() % 400;
    const std::vector<std::int64_t> rates = flops_rates(shares, rate);
    const double target = static_cast<double>(elements(shares)) / rate;
    // One layer's rate a step further on would be past the target: no other whole rates that
    // follow the FLOPs come nearer.
    double finest = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const double length = static_cast<double>(shares[i].elements);
      const double at = static_cast<double>(rates[i]);
      const double below = at > 1 ? length / (at - 1) - length / at : length;
      finest = std::max(finest, std::max(below, length / at - length / (at + 1)) + 1);
    }
    EXPECT_LE(std::abs(static_cast<double>(sent(shares, rates)) - target), finest) << round;
  }
}

TEST(FlopsRates, NoMultiplierComesNearer) {
  std::mt19937 random(12);
  for (int round = 0; round < 15; ++round) {
    const std::vector<Share> shares = random_model(random);
    const double rate = 2 + random() % 400;
    const double target = static_cast<double>(elements(shares)) / rate;
    const auto miss = [&](const std::vector<std::int64_t>& rates) {
      return std::abs(static_cast<double>(sent(shares, rates)) - target);
    };
    const double ours = miss(flops_rates(shares, rate));
    for (double c = 0.5; c < 2.1e6; c *= 1.003) ASSERT_GE(miss(rates_at(shares, c)), ours) << c;
  }
}

TEST(FlopsRates, RatesFollowTheFlops) {
  std::mt19937 random(13);
  for (int round = 0; round < 60; ++round) {
    const std::vector<Share> shares = random_model(random);
    const std::vector<std::int64_t> rates = flops_rates(shares, 2 + random() % 400);
    double lowest = 0;  // of the values that c can have
    double highest = 1e300;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      ASSERT_GE(rates[i], 1);
      ASSERT_LE(rates[i], kLargestFlopsRate);
      const double flops = shares[i].flops_per_gradient;
      if (rates[i] > 1) lowest = std::max(lowest, (static_cast<double>(rates[i]) - 0.5) * flops);
      if (rates[i] < kLargestFlopsRate) {
        highest = std::min(highest, (static_cast<double>(rates[i]) + 0.5) * flops);
      }
    }
    EXPECT_LE(lowest, highest) << "one c gives all rates";
  }
}

TEST(FlopsRates, DoNotDependOnTheUnitOfFlopsOrTheOrder) {
  std::mt19937 random(14);
  for (int round = 0; round < 20; ++round) {
    std::vector<Share> shares = random_model(random);
    const std::vector<std::int64_t> rates = flops_rates(shares, 92);
    for (Share& share : shares) share.flops_per_gradient *= 4096;
    EXPECT_EQ(flops_rates(shares, 92), rates);
    std::reverse(shares.begin(), shares.end());
    EXPECT_EQ(flops_rates(shares, 92), std::vector<std::int64_t>(rates.rbegin(), rates.rend()));
  }
}

TEST(FlopsRates, EqualFlopsGiveTheOverallRate) {
  const std::vector<Share> shares{{100000, 7}, {50000, 7}, {250000, 7}};
  EXPECT_EQ(flops_rates(shares, 100), (std::vector<std::int64_t>{100, 100, 100}));
  EXPECT_EQ(flops_rates(shares, 1), (std::vector<std::int64_t>{1, 1, 1}));
  EXPECT_EQ(flops_rates(shares, 1000), (std::vector<std::int64_t>{1000, 1000, 1000}));
}

TEST(FlopsRates, EqualLayersPartWhereTheWholeWouldMiss) {
  // Together they could only be at 2, 200, or at 3, 134; 160 are wanted.
  const std::vector<Share> shares(4, Share{100, 3});
  const std::vector<std::int64_t> rates = flops_rates(shares, 2.5);
  EXPECT_EQ(rates, (std::vector<std::int64_t>{3, 3, 2, 2}));
  // Rounding up to whole chunks alone is no reason.
  EXPECT_EQ(flops_rates(std::vector<Share>(4, Share{100001, 3}), 10),
            std::vector<std::int64_t>(4, 10));
}

// At 1000 all of these would be dense, as at 1; the right rate lies between.
TEST(FlopsRates, FindTheRateOfShortTensors) {
  const std::vector<Share> shares(20, Share{500, 3});
  EXPECT_EQ(flops_rates(shares, 100), std::vector<std::int64_t>(20, 100));
}

TEST(FlopsRates, ComeAsNearAsTheyCanWhereTheRateIsOutOfReach) {
  // 30 elements send 1 at best.
  EXPECT_EQ(flops_rates(std::vector<Share>{{30, 1}}, 500), std::vector<std::int64_t>{30});
  // Neither the most for the first nor the least for the second is enough.
  const std::vector<Share> shares{{100000, 1}, {3, 1000}};
  EXPECT_EQ(sent(shares, flops_rates(shares, 1000)), 101);
}

TEST(FlopsRates, NothingToDivide) {
  EXPECT_TRUE(flops_rates({}, 100).empty());
  EXPECT_EQ(flops_rates(std::vector<Share>{{0, 1}}, 100), std::vector<std::int64_t>{1});
  EXPECT_EQ(flops_rates(std::vector<Share>{{1, 1}}, 100), std::vector<std::int64_t>{1});
}

}  // namespace
}  // namespace scalecom::layout
