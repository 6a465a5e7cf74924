#include "train/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/device.h"
#include "train/host_copy.h"

namespace train {
namespace {

namespace core = scalecom::core;

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

/// Weights after two steps, and the momentum.
struct Stepped {
  std::vector<float> weights;
  std::vector<float> momentum;
};

Stepped step_twice(core::Device device, std::vector<float> weights, std::vector<float> gradient,
                   std::span<const scalecom::layout::Tensor> tensors,
                   bool gradient_has_momentum = false) {
  const core::Stream stream = device.is_cuda() ? core::Stream::cuda(device) : core::Stream();
  core::Array<float> w(device, static_cast<std::int64_t>(weights.size()));
  core::Array<float> g(device, w.size());
  Sgd sgd(tensors, {0.5, 0.25, gradient_has_momentum}, device);
  from_host(weights, w.span(), stream);
  from_host(gradient, g.span(), stream);
  sgd.step(w.span(), g.span(), 0.5, stream);
  from_host(std::vector<float>(gradient.size()), g.span(), stream);
  sgd.step(w.span(), g.span(), 1, stream);
  const auto host_w = to_host(w.span(), stream);
  const auto host_v = to_host(sgd.momentum(), stream);
  return {{host_w.data(), host_w.data() + host_w.size()},
          {host_v.data(), host_v.data() + host_v.size()}};
}

TEST(SgdTest, TakesNesterovStepsAndDecaysOnlyMatrices) {
  const std::vector<scalecom::layout::Tensor> tensors{{"w", {1, 2}}, {"b", {1}}};
  const Stepped after = step_twice(scalecom::testing::device(), {4, -4, 4}, {1, 1, 1}, tensors);
  // The slopes are 1 + 0.25 * 4, 1 - 0.25 * 4 and 1, and the momentum begins at 0: the weights come
  // to 2.5, -4 and 3.25. Then they are 0.25 * 2.5, 0.25 * -4 and 0.
  EXPECT_EQ(after.momentum, (std::vector<float>{1.625F, -1, 0.5F}));
  EXPECT_EQ(after.weights, (std::vector<float>{2.5F - 1.4375F, -4 + 1.5F, 3.25F - 0.25F}));
}

// Momentum is linear: gradients that have theirs already lead to the same weights.
TEST(SgdTest, GivesMomentumToTheWeightDecayAloneWhereGradientsHaveTheirs) {
  const std::vector<scalecom::layout::Tensor> tensors{{"w", {1, 2}}};
  std::vector<float> plain{4, -4};
  std::vector<float> given{4, -4};
  Sgd sgd(tensors, {0.5, 0.25});
  Sgd with_momentum(tensors, {0.5, 0.25, true});
  float velocity = 0;
  for (const float gradient : {1.0F, 0.0F, -2.0F, 0.5F}) {
    sgd.step(plain, std::vector<float>(2, gradient), 0.5);
    velocity = 0.5F * (velocity + gradient);
    with_momentum.step(given, std::vector<float>(2, velocity + gradient), 0.5);
    for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_FLOAT_EQ(plain[i], given[i]);
  }
}

TEST(SgdTest, EveryDeviceGivesTheSameBits) {
  const std::vector<scalecom::layout::Tensor> tensors{
      {"a", {3, 3, 7, 50}}, {"b", {50}}, {"c", {1, 1}}, {"d", {0, 4}}, {"e", {129, 65}}};
  std::int64_t elements = 0;
  for (const auto& tensor : tensors) elements += tensor.elements();
  std::vector<float> weights;
  std::vector<float> gradient;
  for (std::int64_t i = 0; i < elements; ++i) {
    weights.push_back(std::sin(static_cast<float>(i)));
    gradient.push_back(std::cos(static_cast<float>(3 * i)));
  }
  for (const bool has_momentum : {false, true}) {
    const Stepped host = step_twice({}, weights, gradient, tensors, has_momentum);
    const Stepped device =
        step_twice(scalecom::testing::device(), weights, gradient, tensors, has_momentum);
    EXPECT_EQ(host.weights, device.weights);
    EXPECT_EQ(host.momentum, device.momentum);
  }
}

}  // namespace
}  // namespace train
