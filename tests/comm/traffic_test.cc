#include "scalecom/comm/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

namespace scalecom::comm {
namespace {

TEST(ShareTest, SharesFollowOneAnotherAndDifferByOneAtMost) {
  for (const int size : {1, 2, 3, 7, 128}) {
    for (const std::int64_t elements : {0, 1, 5, 127, 128, 129, 1'000'003}) {
      std::int64_t end = 0;
      for (int rank = 0; rank < size; ++rank) {
        const Share part = share(elements, size, rank);
        EXPECT_EQ(part.begin, end);
        EXPECT_GE(part.size(), elements / size);
        EXPECT_LE(part.size(), elements / size + 1);
        // The first is the longest: pieces of shares are counted by it.
        EXPECT_LE(part.size(), share(elements, size, 0).size());
        end = part.end;
      }
      EXPECT_EQ(end, elements);
    }
  }
}

TEST(ShareTest, SharesOfMoreThanFourBillionElements) {
  const std::int64_t elements = (std::int64_t{1} << 40) + 3;
  EXPECT_EQ(share(elements, 4, 3).end, elements);
  EXPECT_EQ(share(elements, 4, 0).size(), (std::int64_t{1} << 38) + 1);
}

Traffic total(int size, const std::function<Traffic(int rank)>& traffic) {
  Traffic sum;
  for (int rank = 0; rank < size; ++rank) sum += traffic(rank);
  return sum;
}

TEST(TrafficTest, WhatIsSentIsReceived) {
  for (const int size : {1, 2, 3, 8, 128}) {
    for (const std::int64_t n : {0, 1, 13, 1000, 1'000'003}) {
      const auto check = [&](const char* what, const Traffic& sum) {
        EXPECT_EQ(sum.sent, sum.received) << what << " of " << n << " over " << size;
      };
      check("all_reduce", total(size, [&](int r) { return all_reduce_traffic(n, size, r); }));
      check("reduce_scatter",
            total(size, [&](int r) { return reduce_scatter_traffic(n, size, r); }));
      check("broadcast",
            total(size, [&](int r) { return broadcast_traffic(n, size, r, size / 2); }));
      check("all_gather", total(size, [&](int r) {
              return all_gather_traffic(share(n, size, r).size(), n, size);
            }));
    }
  }
}

TEST(TrafficTest, BroadcastAndAllReduceStayBelowTwicePayload) {
  const std::int64_t floats = 128 * 129 * 130;
  for (const int size : {2, 3, 8, 128}) {
    const std::int64_t bound = 2 * (size - 1) * (floats * 4 / size + 4);
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_LE(all_reduce_traffic(floats, size, rank).sent, bound);
      const Traffic broadcast = broadcast_traffic(floats * 4, size, rank, 1);
      EXPECT_LE(broadcast.sent + broadcast.received, bound);
    }
  }
}

TEST(TrafficTest, ExamplesByHand) {
  // Shares of 10 floats over 4 ranks: 3, 3, 2, 2.
  EXPECT_EQ(all_reduce_traffic(10, 4, 0), one_call((7 + 9) * 4, (7 + 9) * 4));
  EXPECT_EQ(all_reduce_traffic(10, 4, 3), one_call((8 + 6) * 4, (8 + 6) * 4));
  EXPECT_EQ(reduce_scatter_traffic(10, 4, 3), one_call(8 * 4, 6 * 4));
  EXPECT_EQ(broadcast_traffic(10, 4, 0, 0), one_call(7 + 9, 0));
  EXPECT_EQ(broadcast_traffic(10, 4, 1, 0), one_call(2 * 3, 10));
  EXPECT_EQ(broadcast_traffic(10, 1, 0, 0), (Traffic{0, 0, 0}));
  EXPECT_EQ(all_gather_traffic(3, 10, 4), (Traffic{9, 7, 1}));
}

TEST(CountersTest, AddSubtractAndTotal) {
  Counters a;
  a[Call::kBroadcast] = {10, 20, 1};
  a[Call::kSendReceive] = {1, 2, 3};
  Counters b = a;
  b += a;
  EXPECT_EQ(b[Call::kBroadcast], (Traffic{20, 40, 2}));
  EXPECT_EQ(b - a, a);
  EXPECT_EQ(a.total(), (Traffic{11, 22, 4}));
}

TEST(CountersTest, EveryCallHasAName) {
  for (int i = 0; i < kCalls; ++i) {
    EXPECT_NE(std::string(to_string(static_cast<Call>(i))), "unknown call");
  }
}

}  // namespace
}  // namespace scalecom::comm
