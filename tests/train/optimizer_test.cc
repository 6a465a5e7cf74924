#include "train/optimizer.h"

#include <gtest/gtest.h>

#include <vector>

namespace train {
namespace {

TEST(ScheduleTest, RisesAndFalls) {
  const Schedule schedule{1.0, 0.2, 99};
  EXPECT_NEAR(schedule.rate(0), 0.05, 1e-12);
  EXPECT_NEAR(schedule.rate(19), 1, 1e-12);
  EXPECT_NEAR(schedule.rate(59), 0.5, 1e-12);
  EXPECT_GT(schedule.rate(98), 0);
  for (std::int64_t step = 20; step < 98; ++step) {
    EXPECT_GT(schedule.rate(step), schedule.rate(step + 1));
  }
}

TEST(ScheduleTest, NeedsNoWarmUp) {
  const Schedule schedule{1.0, 0, 1};
  EXPECT_NEAR(schedule.rate(0), 0.5, 1e-12);
}

TEST(SgdTest, TakesNesterovStepsAndDecaysOnlyMatrices) {
  const std::vector<scalecom::layout::Tensor> tensors{{"w", {1, 2}}, {"b", {1}}};
  Sgd sgd(tensors, {0.5, 0.25});
  std::vector<float> weights{4, -4, 4};
  const std::vector<float> gradient{1, 1, 1};
  sgd.step(weights, gradient, 0.5);
  // The slopes are 1 + 0.25 * 4, 1 - 0.25 * 4 and 1; the momentum begins at 0.
  EXPECT_EQ(weights, (std::vector<float>{4 - 0.5F * 3, -4, 4 - 0.5F * 1.5F}));
  EXPECT_EQ(sgd.momentum()[0], 2);
  sgd.step(weights, std::vector<float>{0, 0, 0}, 1);
  EXPECT_EQ(sgd.momentum()[2], 0.5F);
  EXPECT_EQ(weights[2], 3.25F - 0.25F);
}

}  // namespace
}  // namespace train
