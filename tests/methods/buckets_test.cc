#include "scalecom/methods/buckets.h"

#include <gtest/gtest.h>

namespace scalecom::methods {
namespace {

class BucketsTest : public ::testing::Test {
 protected:
  int& use(const layout::Layout& layout, std::int64_t step, bool warming_up = false) {
    return buckets_.get(layout, warming_up, step, [&] { return std::make_shared<int>(++made_); });
  }

  const layout::Layout x_{{{"x", 0, 100, 10}}};
  const layout::Layout y_{{{"y", 0, 100, 10}}};
  Buckets<int> buckets_;
  int made_ = 0;
};

TEST_F(BucketsTest, AreMadeOnceALayoutAndKindOfStep) {
  EXPECT_EQ(buckets_.find(x_), nullptr);
  EXPECT_EQ(use(x_, 0), 1);
  EXPECT_EQ(use(y_, 0), 2);
  EXPECT_EQ(use(x_, 0, true), 3);
  EXPECT_EQ(use(x_, 0), 1);
  EXPECT_EQ(*buckets_.find(x_), 1);
  EXPECT_EQ(*buckets_.find(x_, true), 3);
  EXPECT_EQ(buckets_.find(y_, true), nullptr);
}

TEST_F(BucketsTest, GoWhenAStepHasNotUsedThem) {
  for (std::int64_t step = 0; step < 5; ++step) {
    buckets_.begin_step(step);
    EXPECT_EQ(use(x_, step), 1) << "kept from step to step";
    if (step < 2) use(y_, step);
    EXPECT_EQ(buckets_.find(y_) != nullptr, step < 3) << "step " << step;
  }
  EXPECT_EQ(use(y_, 5), 3) << "anew";
}

// Replays use what the last step before them did.
TEST_F(BucketsTest, OutliveReplayedSteps) {
  use(y_, 0);
  buckets_.begin_step(1);
  use(x_, 1);
  buckets_.replayed(8);
  buckets_.begin_step(8);
  EXPECT_NE(buckets_.find(x_), nullptr);
  EXPECT_EQ(buckets_.find(y_), nullptr);
}

}  // namespace
}  // namespace scalecom::methods
