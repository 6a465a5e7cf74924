#include "scalecom/layout/selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

namespace scalecom::layout {
namespace {

using Kind = Selection::Kind;

// The same numbers, chunk by chunk.
void expect_consistent(const Cut& cut, const Selection& selection, double rate) {
  std::int64_t kept = 0;
  std::int64_t chunks = 0;
  for (std::int64_t at = 0; at < cut.length; at += cut.chunk, ++chunks) {
    ASSERT_EQ(cut.kept_before(chunks), kept);
    const std::int64_t size = std::min(cut.chunk, cut.length - at);
    const std::int64_t share = std::llround(static_cast<double>(size) / rate);
    const std::int64_t keeps =
        selection.kind == Kind::kTop ? std::max<std::int64_t>(1, share) : std::int64_t{1};
    ASSERT_LE(keeps, size);
    kept += keeps;
  }
  ASSERT_EQ(cut.chunks(), chunks);
  ASSERT_EQ(cut.kept(), kept);
  ASSERT_EQ(cut.kept_before(chunks), kept);
}

TEST(Cut, LargestOfEveryChunk) {
  const Cut even = cut({"a", 0, 1000, 100}, {Kind::kLargest, 0});
  EXPECT_EQ(even.chunks(), 10);
  EXPECT_EQ(even.kept(), 10);
  EXPECT_EQ(even.keep_tail, 0);
  const Cut tailed = cut({"a", 0, 1001, 100}, {Kind::kRandom, 0});
  EXPECT_EQ(tailed.chunks(), 11);
  EXPECT_EQ(tailed.kept(), 11);
  EXPECT_EQ(tailed.keep_tail, 1);
}

TEST(Cut, TopOfEveryChunk) {
  const Cut top = cut({"a", 0, 2500, 100}, {Kind::kTop, 1000});
  EXPECT_EQ(top.keep, 10);
  EXPECT_EQ(top.keep_tail, 5);
  EXPECT_EQ(top.kept(), 25);
  const Cut small = cut({"a", 0, 25, 100}, {Kind::kTop, 10});
  EXPECT_EQ(small.keep, 1);
  EXPECT_EQ(small.keep_tail, 1);
  EXPECT_EQ(small.kept(), 3);
}

TEST(Cut, SizesAndRatesAtTheEdge) {
  EXPECT_EQ(cut({"a", 0, 0, 100}, {Kind::kLargest, 0}).kept(), 0);
  EXPECT_EQ(cut({"a", 0, 0, 100}, {Kind::kLargest, 0}).chunks(), 0);
  EXPECT_EQ(cut({"a", 0, 1, 100}, {Kind::kLargest, 0}).kept(), 1);
  EXPECT_EQ(cut({"a", 0, 7, 1}, {Kind::kLargest, 0}).kept(), 7);
  EXPECT_EQ(cut({"a", 0, 7, 1e300}, {Kind::kLargest, 0}).kept(), 1);
  EXPECT_EQ(cut({"a", 0, 7, 1e300}, {Kind::kTop, 5}).kept(), 2);
  EXPECT_EQ(cut({"a", 0, 12, 2.5}, {Kind::kLargest, 0}).chunk, 3);
}

TEST(Cut, CountsAgreeWithCountingChunkByChunk) {
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    const auto length = static_cast<std::int64_t>(random() % 3000);
    const double rate = 1 + (random() % 4000) / 16.0;
    const auto chunk = static_cast<std::int64_t>(1 + random() % 500);
    for (const Selection selection : {Selection{Kind::kLargest, 0}, Selection{Kind::kTop, chunk},
                                      Selection{Kind::kRandom, 0}}) {
      expect_consistent(cut({"a", 0, length, rate}, selection), selection, rate);
    }
  }
}

}  // namespace
}  // namespace scalecom::layout
