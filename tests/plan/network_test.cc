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
  EXPECT_EQ(hops(Call::kBroadcast, Algorithm::kRing, 5), 4);
  EXPECT_EQ(hops(Call::kBroadcast, Algorithm::kTree, 5), 3);
  EXPECT_EQ(hops(Call::kReduceScatter, Algorithm::kDirect, 2), 1);
  EXPECT_EQ(hops(Call::kReduceScatter, Algorithm::kRing, 5), 4);
  EXPECT_EQ(hops(Call::kAllGather, Algorithm::kTree, 4), 2);
  for (const Algorithm one : {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree}) {
    EXPECT_EQ(hops(Call::kAllToAll, one, 5), 1);
    EXPECT_EQ(hops(Call::kAllReduce, one, 1), 0);
  }
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

TEST(WireTime, ANumberComesEarlyOverDirectCollectivesAlone) {
  auto levels = all_reduce_of(1, 2);
  levels.between[Call::kAllGather] = comm::all_gather_traffic(8, 16, 2);
  EXPECT_NEAR(wire_time(levels, false, flat(2, 1e15, 1, Algorithm::kRing)).between, 3, 1e-6);
  // What is saved is a hop as it was timed.
  Network network = flat(2, 1e15, 1, Algorithm::kDirect);
  network.between.timed = {{1, 3}, {100, 3}};
  EXPECT_NEAR(wire_time(levels, false, network).between, 2 * 3, 1e-6);
}

TEST(WireTime, IsThatOfTheBusierWayAndOfEveryCall) {
  const Network network = flat(4, 1e3, 1, Algorithm::kDirect);
  const auto of = [&](Call call, const comm::Traffic& traffic) {
    methods::LevelTraffic levels;
    levels.between[call] = traffic;
    return wire_time(levels, false, network).between;
  };
  EXPECT_DOUBLE_EQ(of(Call::kAllGather, {3000, 1000, 1}), 1 + 3);
  EXPECT_DOUBLE_EQ(of(Call::kAllGather, {1000, 3000, 1}), 1 + 3);
  EXPECT_DOUBLE_EQ(of(Call::kAllGather, {3000, 3000, 5}), 5 + 3);
  EXPECT_DOUBLE_EQ(of(Call::kAllReduce, {3000, 3000, 5}), 2 * 5 + 3);
  methods::LevelTraffic both;
  both.between[Call::kBroadcast] = {1000, 0, 1};
  both.between[Call::kAllReduce] = {2000, 2000, 1};
  EXPECT_DOUBLE_EQ(wire_time(both, false, network).between, 2 + 1 + 2 + 2);
}

TEST(WireTime, OnlySumsOverDirectCollectivesGoInPieces) {
  const std::int64_t bytes = 3 * comm::kScratchBytes;
  const auto hops_of = [&](Call call, Algorithm algorithm, std::int64_t calls) {
    methods::LevelTraffic levels;
    levels.between[call] = {bytes, bytes, calls};
    return wire_time(levels, false, flat(4, 1e20, 1, algorithm)).between;
  };
  EXPECT_NEAR(hops_of(Call::kReduceScatter, Algorithm::kDirect, 1), 3, 1e-9);
  EXPECT_NEAR(hops_of(Call::kAllGather, Algorithm::kDirect, 1), 1, 1e-9);
  // Half of an all-reduce's bytes come before the sum; of two calls each has its own pieces.
  EXPECT_NEAR(hops_of(Call::kAllReduce, Algorithm::kDirect, 1), 2 * 2, 1e-9);
  EXPECT_NEAR(hops_of(Call::kReduceScatter, Algorithm::kDirect, 2), 2 * 2, 1e-9);
  EXPECT_NEAR(hops_of(Call::kAllReduce, Algorithm::kRing, 1), 6, 1e-9);
  EXPECT_NEAR(hops_of(Call::kAllReduce, Algorithm::kTree, 1), 4, 1e-9);
}

TEST(Link, HopsOutsideOfThoseThatWereTimed) {
  const Link link{1e3, 0.01, {{10, 0.02}, {20, 0.04}, {30, 0.005}}};
  EXPECT_DOUBLE_EQ(link.hop_seconds(0), 0.02);
  EXPECT_DOUBLE_EQ(link.hop_seconds(10), 0.02);
  EXPECT_DOUBLE_EQ(link.hop_seconds(20), 0.04);
  EXPECT_DOUBLE_EQ(link.hop_seconds(130), 0.005 + 0.1);
  // What takes less than the latency has nothing that a slower link would make longer.
  const Link slower = link.with_bandwidth(500);
  EXPECT_DOUBLE_EQ(slower.bandwidth, 500);
  EXPECT_DOUBLE_EQ(slower.hop_seconds(10), 0.03);
  EXPECT_DOUBLE_EQ(slower.hop_seconds(30), 0.005);
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
  // Over wires inside that are slower than those between, they decide: 3 parts of 15.
  network.inside = {1e6, 0};
  EXPECT_DOUBLE_EQ(wire_time(levels, false, network).between, 1);
  network.algorithm = Algorithm::kDirect;
  EXPECT_DOUBLE_EQ(wire_time(levels, false, network).between, 0.2);
}

TEST(WireTime, HopsAreThoseOfTheRanksThatACallIsBetween) {
  Network network = flat(12, 1e20, 1, Algorithm::kRing);
  network.per_node = 4;
  network.inside = {1e20, 100};
  methods::LevelTraffic levels;
  levels.inside[Call::kReduceScatter] = {4, 4, 1};
  levels.inside[Call::kAllGather] = {4, 4, 1};
  levels.between[Call::kAllReduce] = {4, 4, 1};
  const WireTime grouped = wire_time(levels, true, network);
  EXPECT_NEAR(grouped.gather, 300, 1e-9);
  EXPECT_NEAR(grouped.between, 4, 1e-9);
  EXPECT_NEAR(grouped.spread, 300, 1e-9);
  levels.inside = {};
  network.inside.latency = 0.5;
  EXPECT_NEAR(wire_time(levels, false, network).between, 22, 1e-9);
  network.inside.latency = 2;
  EXPECT_NEAR(wire_time(levels, false, network).between, 44, 1e-9);
  // In one node nothing crosses the wires between nodes.
  network.per_node = 12;
  network.between.latency = 1000;
  EXPECT_NEAR(wire_time(levels, false, network).between, 44, 1e-9);
}

}  // namespace
}  // namespace scalecom::plan
