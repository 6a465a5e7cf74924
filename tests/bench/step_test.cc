#include "bench/step.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "scalecom/core/error.h"

namespace bench {
namespace {

TEST(Step, IsVerifiedAndTimed) {
  for (const std::int64_t elements : {2, 100, 12345, 400000}) {
    StepPlan plan;
    plan.elements = elements;
    plan.rate = std::min<double>(100, static_cast<double>(elements));
    plan.repeats = 3;
    int calls = 0;
    const StepFigures figures = measure_step(plan, [&](int, int) { ++calls; });
    EXPECT_TRUE(figures.verified) << elements;
    EXPECT_GT(figures.leader_ms, 0);
    EXPECT_GT(figures.follower_ms, 0);
    EXPECT_GT(figures.plain_ms, 0);
    EXPECT_GT(figures.floor_ms, 0);
    EXPECT_EQ(calls, 5);
  }
}

TEST(Step, EverySelectionAndTypeIsVerified) {
  using scalecom::core::DType;
  for (const char* const select : {"chunk", "chunk:1000", "chunk:77", "exact", "random"}) {
    for (const DType type : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
      StepPlan plan;
      plan.elements = 100'003;
      plan.rate = 10;
      plan.select = select;
      plan.type = type;
      plan.repeats = 1;
      EXPECT_TRUE(measure_step(plan, [](int, int) {}).verified)
          << select << " " << scalecom::core::to_string(type);
    }
  }
}

TEST(Step, NeedsOneMemoryAndUnderATwentiethMore) {
  StepPlan plan;
  plan.elements = 10'000'000;
  plan.repeats = 1;
  const StepFigures figures = measure_step(plan, [](int, int) {});
  const double gradient = 4.0 * static_cast<double>(plan.elements);
  EXPECT_GT(static_cast<double>(figures.peak_bytes), gradient);
  EXPECT_LT(static_cast<double>(figures.peak_bytes), 1.05 * gradient);
}

TEST(Step, APlanThatCannotBeRunIsRefused) {
  const auto refused = [](auto change) {
    StepPlan plan;
    change(plan);
    EXPECT_THROW(measure_step(plan, [](int, int) {}), scalecom::core::UsageError);
  };
  refused([](StepPlan& plan) { plan.elements = 0; });
  refused([](StepPlan& plan) { plan.elements = -5; });
  refused([](StepPlan& plan) { plan.rate = 0; });
  refused([](StepPlan& plan) { plan.rate = 1e9; });
  refused([](StepPlan& plan) { plan.repeats = 0; });
  refused([](StepPlan& plan) { plan.repeats = 1'000'000'001; });
  refused([](StepPlan& plan) { plan.threads = -1; });
  refused([](StepPlan& plan) {
    plan.elements = 1000;
    plan.beta = 2;
  });
  refused([](StepPlan& plan) { plan.select = "best"; });
  refused([](StepPlan& plan) { plan.device = scalecom::core::Device::cuda(99); });
}

}  // namespace
}  // namespace bench
