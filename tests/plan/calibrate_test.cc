#include "scalecom/plan/calibrate.h"

#include <gtest/gtest.h>

#include <random>

#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/error.h"

namespace scalecom::plan {
namespace {

constexpr int kPeers = 3;

std::vector<HopTime> times_over(const Link& link, double noise) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> draw(1 - noise, 1 + noise);
  std::vector<HopTime> times;
  for (const std::int64_t size : hop_sizes(kPeers + 1)) {
    const auto bytes = static_cast<double>(size);
    const double seconds = link.latency_of(bytes) + kPeers * bytes / link.bandwidth;
    times.push_back({bytes, kPeers * bytes, seconds * draw(random)});
  }
  return times;
}

TEST(FitLink, FindsTheLinkAgain) {
  Link link;
  for (const double bandwidth : {12.5e6, 125e6, 1.25e9}) {
    for (const double latency : {50e-6, 1e-3, 20e-3}) {
      link.bandwidth = bandwidth;
      link.latency = latency;
      const Link found = fit_link(times_over(link, 0.01));
      EXPECT_NEAR(found.bandwidth / bandwidth, 1, 0.05);
      EXPECT_NEAR(found.latency / latency, 1, 0.06);
      EXPECT_EQ(found.long_latency, 0);
    }
  }
}

TEST(FitLink, FindsThatLongMessagesWaitLonger) {
  Link link;
  link.bandwidth = 125e6;
  link.latency = 1e-3;
  link.long_message = 65536;
  link.long_latency = 3e-3;
  const Link found = fit_link(times_over(link, 0.01));
  EXPECT_NEAR(found.bandwidth / link.bandwidth, 1, 0.05);
  EXPECT_NEAR(found.latency / link.latency, 1, 0.05);
  EXPECT_NEAR(found.long_latency / link.long_latency, 1, 0.1);
  EXPECT_EQ(found.long_message, 65536);
}

TEST(FitLink, RefusesWhatIsNoLink) {
  EXPECT_THROW(fit_link(std::vector<HopTime>{{1, 1, 1}, {2, 2, 2}}), core::UsageError);
  EXPECT_THROW(fit_link(std::vector<HopTime>{{1, 1, 1}, {2, 2, 0}, {3, 3, 1}}), core::UsageError);
  EXPECT_THROW(fit_link(std::vector<HopTime>{{1, 1, 3}, {2e6, 2e6, 2}, {3e6, 3e6, 1}}),
               core::UsageError);
}

TEST(MeasureHops, EveryRankGetsTheSameTimes) {
  constexpr int kRanks = 3;
  const std::vector<std::int64_t> sizes{1, 1000, 100'000};
  std::vector<std::vector<HopTime>> times(kRanks);
  comm::inproc::run(kRanks, [&](comm::Communicator& ranks) {
    times[static_cast<std::size_t>(ranks.rank())] = measure_hops(ranks, sizes);
  });
  for (const auto& one : times) {
    ASSERT_EQ(one.size(), sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_EQ(one[i].seconds, times[0][i].seconds);
      EXPECT_GT(one[i].seconds, 0);
      EXPECT_EQ(one[i].sent_bytes, 2 * static_cast<double>(sizes[i]));
    }
  }
}

TEST(MeasureHops, NeedsTwoRanks) {
  const auto alone = comm::inproc::make_world(1);
  EXPECT_THROW(measure_hops(*alone.front(), hop_sizes(kPeers + 1)), core::UsageError);
}

}  // namespace
}  // namespace scalecom::plan
