#include "train/models/layers/ctc_loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include "tests/train/models/layers/here.h"

namespace train::models::layers {
namespace {

at::Tensor some_logits(std::int64_t samples, std::int64_t steps, std::int64_t classes) {
  const at::Tensor count = at::arange(samples * steps * classes, at::kFloat);
  return (2 * at::sin(count * count * 0.37)).view({samples, steps, classes});
}

struct Case {
  at::Tensor labels;
  at::Tensor lengths;
};

Case some_labels() {
  // A repeat, a single label, none, and as many as there are places.
  return {at::tensor({3, 3, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 4}, at::kLong).view({4, 4}),
          at::tensor({3, 1, 0, 4}, at::kLong)};
}

at::Tensor loss_here(const at::Tensor& logits, const at::Tensor& labels) {
  return ctc_loss(logits.to(here()), labels.to(here())).cpu();
}

at::Tensor torch_loss(const at::Tensor& logits, const Case& given) {
  const at::Tensor steps = at::full({logits.size(0)}, logits.size(1), at::kLong);
  return at::ctc_loss(at::log_softmax(logits, 2).transpose(0, 1), given.labels, steps,
                      given.lengths, 0, at::Reduction::None);
}

TEST(CtcLossTest, IsTorchsAndSoIsItsSlope) {
  const Case given = some_labels();
  for (const std::int64_t steps : {6, 9, 40}) {
    const at::Tensor logits = some_logits(4, steps, 5).set_requires_grad(true);
    const at::Tensor own = loss_here(logits, given.labels);
    const at::Tensor theirs = torch_loss(logits, given);
    EXPECT_TRUE(at::allclose(own, theirs, 1e-4, 1e-4)) << own << theirs;
    const at::Tensor shares = at::tensor({1.0, 0.5, 2.0, 0.25}, at::kFloat);
    const at::Tensor slope = torch::autograd::grad({(own * shares).sum()}, {logits})[0];
    const at::Tensor expected = torch::autograd::grad({(theirs * shares).sum()}, {logits})[0];
    EXPECT_TRUE(at::allclose(slope, expected, 1e-3, 1e-4)) << steps;
  }
}

TEST(CtcLossTest, ALabelThatRepeatsNeedsAStepBetween) {
  const at::Tensor labels = at::tensor({2, 2}, at::kLong).view({1, 2});
  const at::Tensor logits = some_logits(1, 3, 3);
  // Three steps leave one way: 2, nothing, 2.
  const at::Tensor p = at::log_softmax(logits, 2)[0];
  const double only = -(p[0][2] + p[1][0] + p[2][2]).item<double>();
  EXPECT_NEAR(loss_here(logits, labels).item<double>(), only, 1e-4);
}

TEST(CtcLossTest, ALongInputThatSaysTheLabelsCostsLittle) {
  const at::Tensor labels = at::tensor({1, 0}, at::kLong).view({1, 2});
  const at::Tensor logits = at::zeros({1, 200, 3});
  logits.slice(2, 0, 1).fill_(20);
  logits[0][100].copy_(at::tensor({0.0F, 20.0F, 0.0F}));
  EXPECT_LT(loss_here(logits, labels).item<double>(), 1e-3);
}

TEST(CtcLossTest, ManyLabels) {
  // More states than a GPU's block has threads.
  const std::int64_t most = 150;
  const at::Tensor labels = at::arange(2 * most, at::kLong).remainder(4).add(1).view({2, most});
  const Case given{labels, at::full({2}, most, at::kLong)};
  const at::Tensor logits = some_logits(2, 400, 5).set_requires_grad(true);
  const at::Tensor own = loss_here(logits, labels);
  const at::Tensor theirs = torch_loss(logits, given);
  EXPECT_TRUE(at::allclose(own, theirs, 1e-4, 1e-4)) << own << theirs;
  const at::Tensor slope = torch::autograd::grad({own.sum()}, {logits})[0];
  const at::Tensor expected = torch::autograd::grad({theirs.sum()}, {logits})[0];
  EXPECT_TRUE(at::allclose(slope, expected, 1e-3, 1e-3));
}

}  // namespace
}  // namespace train::models::layers
