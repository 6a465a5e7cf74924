// Several learners' mini-batches at once, against each on its own.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <vector>

#include "train/models/mobilenet.h"
#include "train/models/pass.h"
#include "train/models/resnet.h"

namespace train::models {
namespace {

constexpr std::int64_t kLearners = 3;
constexpr std::int64_t kBatch = 4;

std::unique_ptr<Model> residual() {
  ResNetOptions options;
  options.input = {2, 8, 8};
  options.widths = {3, 5};
  options.blocks = {1, 2};
  options.classes = 4;
  return make_resnet(options);
}

std::unique_ptr<Model> inverted() {
  MobileNetOptions options;
  options.input = {3, 8, 8};
  options.stem = 8;
  options.stages = {{1, 4, 1, 1}, {2, 6, 2, 2}};
  options.head = 16;
  options.classes = 4;
  return make_mobilenet(options);
}

struct Result {
  at::Tensor losses;                 // of each learner
  std::vector<at::Tensor> gradient;  // of each tensor, the learners first
  std::vector<at::Tensor> figures;   // the same
};

class Together : public testing::TestWithParam<std::unique_ptr<Model> (*)()> {
 protected:
  Together() : model_(GetParam()()) {
    at::manual_seed(7);
    const Shape& shape = model_->input();
    inputs_ = at::randn({kLearners * kBatch, shape.channels, shape.height, shape.width})
                  .contiguous(at::MemoryFormat::ChannelsLast);
    labels_ = at::randint(4, {kLearners * kBatch}, at::kLong);
    for (const auto& tensor : model_->tensors()) {
      weights_.push_back(0.5 * at::randn(tensor.shape) + (tensor.shape.size() == 1 ? 0.5 : 0));
    }
  }

  std::vector<at::Tensor> figures(const std::vector<std::int64_t>& leading) const {
    std::vector<at::Tensor> figures;
    for (const auto& tensor : model_->figures()) {
      std::vector<std::int64_t> shape = leading;
      shape.push_back(tensor.elements());
      figures.push_back(at::zeros(shape));
    }
    return figures;
  }

  Result at_once() const {
    std::vector<at::Tensor> parameters;
    for (const at::Tensor& weight : weights_) {
      std::vector<std::int64_t> shape = weight.sizes().vec();
      shape.insert(shape.begin(), kLearners);
      parameters.push_back(weight.unsqueeze(0).expand(shape));
      parameters.back().set_requires_grad(true);
    }
    Result result;
    result.figures = figures({kLearners});
    Model::Pass pass{inputs_, parameters, result.figures, true, kLearners};
    model_->forward(pass);
    const at::Tensor losses = at::cross_entropy_loss(pass.x, labels_, {}, at::Reduction::None)
                                  .view({kLearners, kBatch})
                                  .mean(1);
    result.losses = losses.detach();
    result.gradient = torch::autograd::grad({losses.sum()}, parameters);
    return result;
  }

  Result one_by_one() const {
    std::vector<at::Tensor> losses;
    std::vector<std::vector<at::Tensor>> gradients(weights_.size());
    std::vector<std::vector<at::Tensor>> seen(model_->figures().size());
    for (std::int64_t learner = 0; learner < kLearners; ++learner) {
      std::vector<at::Tensor> parameters;
      for (const at::Tensor& weight : weights_) {
        parameters.push_back(weight.clone());
        parameters.back().set_requires_grad(true);
      }
      const auto own = figures({});
      Model::Pass pass{inputs_.narrow(0, learner * kBatch, kBatch), parameters, own};
      model_->forward(pass);
      const at::Tensor loss =
          at::cross_entropy_loss(pass.x, labels_.narrow(0, learner * kBatch, kBatch));
      losses.push_back(loss.detach());
      const auto gradient = torch::autograd::grad({loss}, parameters);
      for (std::size_t i = 0; i < gradient.size(); ++i) gradients[i].push_back(gradient[i]);
      for (std::size_t i = 0; i < own.size(); ++i) seen[i].push_back(own[i]);
    }
    Result result{at::stack(losses), {}, {}};
    for (const auto& parts : gradients) result.gradient.push_back(at::stack(parts));
    for (const auto& parts : seen) result.figures.push_back(at::stack(parts));
    return result;
  }

  std::unique_ptr<Model> model_;
  at::Tensor inputs_;
  at::Tensor labels_;
  std::vector<at::Tensor> weights_;
};

TEST_P(Together, EveryLearnerHasItsOwn) {
  ASSERT_TRUE(model_->takes_learners());
  const Result found = at_once();
  const Result expected = one_by_one();
  EXPECT_TRUE(at::allclose(found.losses, expected.losses, 1e-4, 1e-5));
  ASSERT_EQ(found.gradient.size(), expected.gradient.size());
  for (std::size_t i = 0; i < expected.gradient.size(); ++i) {
    ASSERT_EQ(found.gradient[i].sizes(), expected.gradient[i].sizes());
    // Some are 0 but for rounding: a bias before another batch norm.
    const double size = expected.gradient[i].abs().max().item<double>();
    EXPECT_LT((found.gradient[i] - expected.gradient[i]).abs().max().item<double>(),
              1e-4 * size + 1e-6)
        << model_->tensors()[i].name;
  }
  for (std::size_t i = 0; i < expected.figures.size(); ++i) {
    EXPECT_TRUE(at::allclose(found.figures[i], expected.figures[i], 1e-4, 1e-5))
        << model_->figures()[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Together, testing::Values(residual, inverted),
                         [](const auto& model) {
                           return std::string(model.index == 0 ? "ResNet" : "MobileNet");
                         });

}  // namespace
}  // namespace train::models
