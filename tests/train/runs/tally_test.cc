#include "train/runs/tally.h"

#include <gtest/gtest.h>

#include <vector>

namespace train::runs {
namespace {

TEST(TallyTest, CountsTypicalStepsApart) {
  Tally tally;
  tally.add({1000, 9000}, false);
  tally.add({10, 15}, true, {4, 6});
  tally.add({20, 1}, true, {8, 0});
  EXPECT_EQ(tally.sent, 1030);
  EXPECT_EQ(tally.counted, 30);
  EXPECT_EQ(tally.steps, 2);
  EXPECT_EQ(tally.most, 25);
  EXPECT_EQ(tally.inside, 12);
}

TEST(TallyTest, AveragesOverRanksAndSteps) {
  const std::vector<Tally> tallies{{100, 30, 2}, {300, 50, 2}};
  EXPECT_EQ(bytes_per_rank(tallies), 200);
  EXPECT_EQ(bytes_per_rank_step(tallies), 20);
  EXPECT_EQ(bytes_per_rank_step(std::vector<Tally>{{100, 0, 0}}), std::nullopt);
}

TEST(TallyTest, TheBusiestRankIsThatOfAnyStep) {
  EXPECT_EQ(max_rank_bytes(std::vector<Tally>{{0, 0, 2, 70}, {0, 0, 2, 90}}), 90);
  EXPECT_EQ(max_rank_bytes(std::vector<Tally>{{100, 0, 0, 0}}), std::nullopt);
}

TEST(TallyTest, OtherRanksKeepTheMean) {
  const std::vector<Tally> tallies{{100, 30, 2, 70, 8}, {300, 50, 2, 90, 4}};
  const auto divided = divide_anew(tallies, 3);
  ASSERT_EQ(divided.size(), 3U);
  EXPECT_EQ(bytes_per_rank(divided), bytes_per_rank(tallies));
  EXPECT_EQ(bytes_per_rank_step(divided), bytes_per_rank_step(tallies));
  EXPECT_EQ(inside_bytes_per_rank_step(divided), inside_bytes_per_rank_step(tallies));
  EXPECT_EQ(max_rank_bytes(divided), 90);
}

// 2(n-1)/n of the payload where it can be divided evenly, and nothing for one rank.
TEST(TallyTest, KnowsWhatDenseCosts) {
  EXPECT_EQ(dense_bytes_per_rank_step(1000, 1), 0);
  EXPECT_EQ(dense_bytes_per_rank_step(1000, 4), 4 * 1000 * 1.5);
  EXPECT_EQ(dense_bytes_per_rank_step(1000, 8, 2), 4 * 1000 * 1.5 / 2) << "each brings its half";
}

}  // namespace
}  // namespace train::runs
