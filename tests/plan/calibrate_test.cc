#include "scalecom/plan/calibrate.h"

#include <gtest/gtest.h>

#include <random>

#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/error.h"

namespace scalecom::plan {
namespace {

constexpr int kPeers = 3;

/// What hops over such a link take, give or take `noise`; those of over `asks` bytes ask first, and
/// wait for the answer.
std::vector<HopTime> times_over(const Link& link, double noise, double asks = 1e300) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> draw(1 - noise, 1 + noise);
  std::vector<HopTime> times;
  for (const std::int64_t size : hop_sizes(kPeers + 1)) {
    const double bytes = kPeers * static_cast<double>(size);
    const double latency = bytes > asks ? 3 * link.latency : link.latency;
    times.push_back({bytes, (latency + bytes / link.bandwidth) * draw(random)});
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
      for (const double bytes : {1.0, 3e3, 1e5, 2e6, 1e8}) {
        EXPECT_NEAR(found.hop_seconds(bytes) / link.hop_seconds(bytes), 1, 0.06) << bytes;
      }
    }
  }
}

TEST(FitLink, KeepsWhatIsNoStraightLine) {
  Link link;
  link.bandwidth = 125e6;
  link.latency = 1e-3;
  const Link found = fit_link(times_over(link, 0.01, 2e5));
  EXPECT_NEAR(found.bandwidth / link.bandwidth, 1, 0.05);
  EXPECT_NEAR(found.latency / link.latency, 1, 0.05);
  EXPECT_NEAR(found.hop_seconds(1e4) / (1e-3 + 1e4 / 125e6), 1, 0.05);
  EXPECT_NEAR(found.hop_seconds(1e6) / (3e-3 + 1e6 / 125e6), 1, 0.05);
  EXPECT_NEAR(found.hop_seconds(1e8) / (3e-3 + 1e8 / 125e6), 1, 0.05);
}

// Over a distance, too, where the bytes of those that ask cost next to nothing.
TEST(FitLink, KeepsWhatAsksFirstOverADistance) {
  Link link;
  link.bandwidth = 125e6;
  link.latency = 20e-3;
  const Link found = fit_link(times_over(link, 0.01, 2e5));
  EXPECT_NEAR(found.hop_seconds(1e5) / (20e-3 + 1e5 / 125e6), 1, 0.05);
  EXPECT_NEAR(found.hop_seconds(4e5) / (60e-3 + 4e5 / 125e6), 1, 0.05);
}

// One of those that cost what a ping costs is not to be believed more than the others.
TEST(FitLink, APingIsTheMedianOfThem) {
  Link link;
  link.bandwidth = 125e6;
  link.latency = 1e-3;
  std::vector<HopTime> times = times_over(link, 0);
  times.front().seconds *= 1.4;
  const Link found = fit_link(times);
  EXPECT_NEAR(found.latency / link.latency, 1, 0.01);
  EXPECT_NEAR(found.hop_seconds(1) / link.latency, 1, 0.01);
  EXPECT_NEAR(found.hop_seconds(1e3) / (1e-3 + 1e3 / 125e6), 1, 0.01);
}

TEST(HopSizes, GoFromAByteToTwelveMiB) {
  constexpr std::int64_t kAll = std::int64_t{12} << 20;
  for (const int ranks : {2, 4, 13}) {
    const auto sizes = hop_sizes(ranks);
    EXPECT_EQ(sizes.front(), 1);
    EXPECT_EQ(sizes.back(), kAll / (ranks - 1));
    for (std::size_t i = 2; i < sizes.size(); ++i) {
      EXPECT_GT(sizes[i], sizes[i - 1]);
      EXPECT_LE(sizes[i], (sizes[i - 1] < (64 << 10) ? 4 : 2) * sizes[i - 1]);
    }
  }
  EXPECT_EQ(hop_sizes(2).size(), 15U);
}

// Of noise, a plan must not learn that more bytes take less time.
TEST(FitLink, MoreBytesNeverTakeLess) {
  Link link;
  link.bandwidth = 125e6;
  link.latency = 1e-3;
  const Link found = fit_link(times_over(link, 0.3));
  ASSERT_EQ(found.timed.size(), hop_sizes(kPeers + 1).size());
  for (std::size_t i = 1; i < found.timed.size(); ++i) {
    EXPECT_GE(found.timed[i].seconds, found.timed[i - 1].seconds);
  }
}

// Of messages that are all long.
TEST(FitLink, NoLatencyIsUnderNothing) {
  const Link found = fit_link(std::vector<HopTime>{{1e6, 0.01}, {2e6, 0.02}, {4e6, 0.045}});
  EXPECT_EQ(found.latency, 0);
  EXPECT_NEAR(found.bandwidth, 90e6, 2e6);
}

TEST(FitLink, RefusesWhatIsNoLink) {
  EXPECT_THROW(fit_link(std::vector<HopTime>{{1, 1}, {2, 2}}), core::UsageError);
  EXPECT_THROW(fit_link(std::vector<HopTime>{{1, 1}, {2, 0}, {3, 1}}), core::UsageError);
  EXPECT_NO_THROW(fit_link(std::vector<HopTime>{{1, 1}, {2, 2}, {3, 3}}));
  EXPECT_THROW(fit_link(std::vector<HopTime>{{-1, 1}, {2, 2}, {3, 3}}), core::UsageError);
  EXPECT_THROW(fit_link(std::vector<HopTime>{{1, 3}, {2e6, 2}, {3e6, 1}}), core::UsageError);
}

TEST(MeasureHops, EveryRankGetsTheSameTimes) {
  constexpr int kRanks = 3;
  const std::vector<std::int64_t> sizes{1, 1000, 100'000};
  std::vector<std::vector<HopTime>> times(kRanks);
  comm::inproc::run(kRanks, [&](comm::Communicator& ranks) {
    std::vector<int> seen;
    times[static_cast<std::size_t>(ranks.rank())] =
        measure_hops(ranks, sizes, {}, [&](int done, int all) {
          seen.push_back(done);
          EXPECT_EQ(all, 3);
        });
    EXPECT_EQ(seen, (std::vector<int>{1, 2, 3}));
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
