#include "train/optimizers/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/device.h"
#include "train/machine/host_copy.h"
#include "train/optimizers/sgd.h"

namespace train::optimizers {
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

/// Weights after two steps, and the first of the optimizer's states.
struct Stepped {
  std::vector<float> weights;
  std::vector<float> momentum;
};

/// Of which the second has no gradient.
Stepped step_twice(core::Device device, const std::vector<float>& weights,
                   const std::vector<float>& gradient,
                   std::span<const scalecom::layout::Tensor> tensors, Optimizer::Options options) {
  const core::Stream stream = device.is_cuda() ? core::Stream::cuda(device) : core::Stream();
  core::Array<float> w(device, static_cast<std::int64_t>(weights.size()));
  core::Array<float> g(device, w.size());
  options.momentum = 0.5;
  options.weight_decay = 0.25;
  const auto optimizer = make_optimizer(tensors, options, device);
  machine::from_host(weights, w.span(), stream);
  machine::from_host(gradient, g.span(), stream);
  optimizer->step(w.span(), g.span(), 0.5, 0, stream);
  machine::from_host(std::vector<float>(gradient.size()), g.span(), stream);
  optimizer->step(w.span(), g.span(), 1, 1, stream);
  const auto host_w = machine::to_host(w.span(), stream);
  const auto host_v = machine::to_host(optimizer->states()[0].values, stream);
  return {{host_w.data(), host_w.data() + host_w.size()},
          {host_v.data(), host_v.data() + host_v.size()}};
}

TEST(SgdTest, TakesNesterovStepsAndDecaysOnlyMatrices) {
  const std::vector<scalecom::layout::Tensor> tensors{{"w", {1, 2}}, {"b", {1}}};
  const Stepped after = step_twice(scalecom::testing::device(), {4, -4, 4}, {1, 1, 1}, tensors, {});
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
  constexpr auto kSgd = Optimizer::Kind::kSgd;
  Sgd sgd(tensors, {kSgd, 0.5, 0.25});
  Sgd with_momentum(tensors, {kSgd, 0.5, 0.25, true});
  float velocity = 0;
  for (const float gradient : {1.0F, 0.0F, -2.0F, 0.5F}) {
    sgd.step(plain, std::vector<float>(2, gradient), 0.5, 0, {});
    velocity = 0.5F * (velocity + gradient);
    with_momentum.step(given, std::vector<float>(2, velocity + gradient), 0.5, 0, {});
    for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_FLOAT_EQ(plain[i], given[i]);
  }
}

TEST(SgdTest, MaskedMomentumIsKeptAndMovesOnlyWhatWasSent) {
  const std::vector<scalecom::layout::Tensor> tensors{{"b", {2}}};
  Optimizer::Options masked;
  masked.masked = true;
  const Stepped after = step_twice(scalecom::testing::device(), {4, 4}, {1, 0}, tensors, masked);
  // The second step has no gradient anywhere: the momentum decays, and nothing moves.
  EXPECT_EQ(after.momentum, (std::vector<float>{0.5F, 0}));
  EXPECT_EQ(after.weights, (std::vector<float>{4 - 0.5F * 1.5F, 4}));
}

// As fast as with plain momentum, by whose factor of 0.5 a pull counts twice in the long run.
TEST(SgdTest, MaskedMomentumLetsWeightsDecayInEveryStep) {
  const std::vector<scalecom::layout::Tensor> tensors{{"w", {1, 2}}};
  Optimizer::Options masked;
  masked.masked = true;
  const Stepped after = step_twice(scalecom::testing::device(), {4, 4}, {1, 0}, tensors, masked);
  // By half a learning rate of their weights, 0.5 and then 1.
  EXPECT_EQ(after.momentum, (std::vector<float>{0.5F, 0}));
  EXPECT_EQ(after.weights, (std::vector<float>{(3 - 0.5F * 1.5F) / 2, 3.0F / 2}));
}

TEST(AdamTest, StepsByTheRateWhateverTheGradient) {
  const std::vector<scalecom::layout::Tensor> tensors{{"b", {3}}};
  const auto adam = make_optimizer(tensors, {Optimizer::Kind::kAdam, 0.9, 0});
  std::vector<float> weights{1, 1, 1};
  // With a gradient that stays, both means are it and its square from the first step on.
  for (std::int64_t step = 0; step < 5; ++step) {
    adam->step(weights, std::vector<float>{1e-3F, -1e3F, 0}, 0.125, step, {});
    const float moved = 0.125F * static_cast<float>(step + 1);
    EXPECT_NEAR(weights[0], 1 - moved, 1e-5);
    EXPECT_NEAR(weights[1], 1 + moved, 1e-5);
    EXPECT_EQ(weights[2], 1);
  }
}

TEST(AdamTest, DecaysOnlyMatricesAndByTheRateAlone) {
  const std::vector<scalecom::layout::Tensor> tensors{{"w", {1, 1}}, {"b", {1}}};
  const auto adam = make_optimizer(tensors, {Optimizer::Kind::kAdam, 0.9, 0.5});
  std::vector<float> weights{8, 8};
  adam->step(weights, std::vector<float>{0, 0}, 0.25, 0, {});
  EXPECT_EQ(weights, (std::vector<float>{7, 8}));
}

TEST(OptimizerTest, EveryDeviceGivesTheSameBits) {
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
  for (std::size_t i = 0; i < gradient.size(); i += 3) gradient[i] = 0;
  Optimizer::Options has_momentum;
  has_momentum.gradient_has_momentum = true;
  Optimizer::Options masked;
  masked.masked = true;
  Optimizer::Options adam;
  adam.kind = Optimizer::Kind::kAdam;
  for (const Optimizer::Options& options : {Optimizer::Options(), has_momentum, masked, adam}) {
    const Stepped host = step_twice({}, weights, gradient, tensors, options);
    const Stepped device =
        step_twice(scalecom::testing::device(), weights, gradient, tensors, options);
    EXPECT_EQ(host.weights, device.weights);
    EXPECT_EQ(host.momentum, device.momentum);
  }
}

}  // namespace
}  // namespace train::optimizers
