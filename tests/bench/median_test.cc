#include "bench/median.h"

#include <gtest/gtest.h>

namespace bench {
namespace {

TEST(MedianTest, IsTheMiddleOne) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({1, 2}), 2);  // of two, the larger
}

TEST(MedianTest, OfRunsSeesThroughAPeriod) {
  const std::vector<double> leading{44, 82, 44, 82, 44, 500, 44, 82, 44, 82, 44};
  EXPECT_EQ(median(leading), 44);
  EXPECT_EQ(median_of_runs(leading, 2), 63);
}

TEST(MedianTest, OfRunsTakesWhatThereIs) {
  EXPECT_EQ(median_of_runs({2, 4}, 8), 3);
  EXPECT_EQ(median_of_runs({5, 1, 3}, 1), 3);
}

}  // namespace
}  // namespace bench
