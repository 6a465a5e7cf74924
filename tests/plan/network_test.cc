#include "scalecom/plan/network.h"

#include <gtest/gtest.h>

#include "scalecom/comm/fabric.h"
#include "scalecom/core/error.h"

namespace scalecom::plan {
namespace {

using comm::Call;

TEST(Hops, OfEachWayToCarryOutACall) {
  EXPECT_EQ(hops(Call::kAllReduce, Algorithm::kDirect, 64), 2);
  EXPECT_EQ(hops(Call::kAllReduce, Algorithm::kRing, 64), 126);
  EXPECT_EQ(hops(Call::kAllReduce, Algorithm::kTree, 64), 12);
  EXPECT_EQ(hops(Call::kAllReduce, Algorithm::kTree, 65), 14);
  EXPECT_EQ(hops(Call::kBroadcast, Algorithm::kDirect, 5), 2);
  EXPECT_EQ(hops(Call::kBroadcast, Algorithm::kDirect, 2), 1);
  EXPECT_EQ(hops(Call::kAllReduce, Algorithm::kDirect, 2), 2);
  EXPECT_EQ(hops(Call::kAllGather, Algorithm::kDirect, 5), 1);
  EXPECT_EQ(hops(Call::kAllGather, Algorithm::kRing, 5), 4);
  EXPECT_EQ(hops(Call::kSendReceive, Algorithm::kRing, 5), 1);
  EXPECT_EQ(hops(Call::kAllReduce, Algorithm::kRing, 1), 0);
}

TEST(Hops, NamesReadBack) {
  for (const Algorithm one : {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree}) {
    EXPECT_EQ(parse_algorithm(to_string(one)), one);
  }
  EXPECT_THROW(parse_algorithm("star"), core::UsageError);
}

Network flat(int workers, double bandwidth, double latency, Algorithm algorithm) {
  Network network;
  network.workers = workers;
  network.between = {bandwidth, latency};
  network.algorithm = algorithm;
  return network;
}

methods::LevelTraffic all_reduce_of(std::int64_t floats, int workers) {
  methods::LevelTraffic levels;
  levels.between[Call::kAllReduce] = comm::all_reduce_traffic(floats, workers, 0);
  return levels;
}

TEST(WireTime, IsLatenciesAndBytesOverBandwidth) {
  const auto levels = all_reduce_of(1'000'000, 4);
  const double bytes = 6e6;
  for (const auto& [algorithm, waits] :
       {std::pair(Algorithm::kDirect, 2), {Algorithm::kRing, 6}, {Algorithm::kTree, 4}}) {
    const WireTime time = wire_time(levels, false, flat(4, 1e9, 0.01, algorithm));
    EXPECT_NEAR(time.between, waits * 0.01 + bytes / 1e9, 1e-9) << to_string(algorithm);
    EXPECT_EQ(time.gather + time.spread, 0);
  }
}

TEST(WireTime, ANumberOfOneRankOfTwoComesWithTheStepBefore) {
  const auto waits = [](std::int64_t floats, int workers, bool gathers) {
    auto levels = all_reduce_of(floats, workers);
    if (gathers)
      levels.between[Call::kAllGather] = comm::all_gather_traffic(8, 8 * workers, workers);
    return wire_time(levels, false, flat(workers, 1e15, 1, Algorithm::kDirect)).between;
  };
  EXPECT_NEAR(waits(1, 2, true), 2, 1e-6);
  EXPECT_NEAR(waits(1, 2, false), 2, 1e-6);
  EXPECT_NEAR(waits(2, 2, true), 3, 1e-6);
  EXPECT_NEAR(waits(1, 3, true), 3, 1e-6);
}

TEST(WireTime, LongArraysGoInPieces) {
  const std::int64_t floats = 25'000'000;
  const Network network = flat(4, 1e9, 0.01, Algorithm::kDirect);
  // Each rank is brought three quarters of the array before it adds them up.
  const int pieces = 3;
  ASSERT_EQ((floats * 3 + comm::kScratchBytes - 1) / comm::kScratchBytes, pieces);
  EXPECT_NEAR(wire_time(all_reduce_of(floats, 4), false, network).between,
              pieces * 2 * 0.01 + 1.5 * 4 * static_cast<double>(floats) / 1e9, 1e-9);
}

TEST(WireTime, GoesByHopsThatWereTimed) {
  Network network = flat(4, 1e9, 0.01, Algorithm::kDirect);
  network.between.timed = {{3, 0.02}, {3000, 0.02}, {6000, 0.05}};
  // A hop sends three quarters of the array.
  EXPECT_NEAR(wire_time(all_reduce_of(1000, 4), false, network).between, 2 * 0.02, 1e-9);
  EXPECT_NEAR(wire_time(all_reduce_of(1500, 4), false, network).between, 2 * 0.035, 1e-9);
  EXPECT_NEAR(wire_time(all_reduce_of(1'002'000, 4), false, network).between, 2 * (0.05 + 3e-3),
              1e-9);
  // Twice as fast, half of what is beyond the latency is left; as fast as it is, all of it.
  const Link link = network.between;
  network.between = link.with_bandwidth(2e9);
  EXPECT_NEAR(wire_time(all_reduce_of(1500, 4), false, network).between, 2 * 0.0225, 1e-9);
  network.between = link.with_bandwidth(1e9);
  EXPECT_NEAR(wire_time(all_reduce_of(1500, 4), false, network).between, 2 * 0.035, 1e-9);
}

TEST(WireTime, MembersOfANodeShareItsLink) {
  Network network = flat(16, 1e9, 0, Algorithm::kDirect);
  network.per_node = 4;
  network.inside = {1e12, 0};
  methods::LevelTraffic levels;
  levels.inside[Call::kReduceScatter] = {3000, 3000, 1};
  levels.inside[Call::kAllGather] = {6000, 6000, 1};
  levels.between[Call::kAllReduce] = {1'000'000, 1'000'000, 1};
  const WireTime grouped = wire_time(levels, true, network);
  EXPECT_DOUBLE_EQ(grouped.gather, 3e-9);
  EXPECT_DOUBLE_EQ(grouped.spread, 6e-9);
  EXPECT_DOUBLE_EQ(grouped.between, 4e-3);

  // Without groups a member sends 12 parts of 15 to other nodes; a ring leaves the node once.
  levels.inside = {};
  EXPECT_DOUBLE_EQ(wire_time(levels, false, network).between, 4e-3 * 12 / 15);
  network.algorithm = Algorithm::kRing;
  EXPECT_DOUBLE_EQ(wire_time(levels, false, network).between, 1e-3);
}

}  // namespace
}  // namespace scalecom::plan
