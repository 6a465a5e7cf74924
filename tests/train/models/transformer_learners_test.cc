#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <vector>

#include "train/models/sequence_pass.h"
#include "train/models/transformer.h"

/// The mini-batches of several learners as one, against each alone.
namespace train::models {
namespace {

constexpr std::int64_t kLearners = 3;
constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kLength = 5;

TransformerOptions tiny() {
  TransformerOptions options;
  options.vocabulary = 11;
  options.width = 8;
  options.heads = 2;
  options.inner = 12;
  options.layers = 2;
  options.longest = kLength + 1;
  options.dropout = 0.25;
  options.batch = kBatch;
  return options;
}

/// Sentences of several lengths, on both sides.
at::Tensor some_rows() {
  const std::int64_t samples = kLearners * kBatch;
  const at::Tensor rows = at::zeros({samples, 2 * kLength + 1}, at::kLong);
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::int64_t words = 1 + (i * 2 + 1) % (kLength - 1);
    for (std::int64_t w = 0; w < words; ++w) {
      rows[i][w] = 3 + (i * 5 + w * 3) % 8;
      rows[i][kLength + 1 + w] = 3 + (i * 7 + w) % 8;
    }
    rows[i][words] = TransformerOptions::kEnd;
    rows[i][kLength] = TransformerOptions::kBegin;
    rows[i][kLength + 1 + words] = TransformerOptions::kEnd;
  }
  return rows;
}

TEST(TransformerLearnersTest, EachGetsItsOwnLossAndGradient) {
  const TransformerOptions options = tiny();
  const auto model = make_transformer(options);
  ASSERT_TRUE(model->takes_learners());
  std::vector<float> values(static_cast<std::size_t>(model->parameters().elements()));
  model->parameters().initialise(3, values);
  std::vector<float> positions = options.positions();
  const at::Tensor table =
      at::from_blob(positions.data(), {options.longest, options.width}, at::kFloat);
  std::vector<at::Tensor> own;
  std::vector<at::Tensor> shared;
  float* next = values.data();
  for (const auto& tensor : model->parameters().tensors()) {
    own.push_back(at::from_blob(next, tensor.shape, at::kFloat).set_requires_grad(true));
    std::vector<std::int64_t> shape = tensor.shape;
    shape.insert(shape.begin(), kLearners);
    shared.push_back(own.back().detach().unsqueeze(0).expand(shape).set_requires_grad(true));
    next += tensor.elements();
  }
  const at::Tensor rows = some_rows();
  const at::Tensor noise = at::tensor({5, -7, 123456}, at::kInt);
  const at::Tensor losses = model->loss({rows, shared, table, noise, kLearners}).tensor;
  ASSERT_EQ(losses.sizes(), at::IntArrayRef({kLearners}));
  const auto gradients = torch::autograd::grad({losses.sum()}, shared);

  for (std::int64_t learner = 0; learner < kLearners; ++learner) {
    const at::Tensor part = rows.narrow(0, learner * kBatch, kBatch);
    const at::Tensor loss = model->loss({part, own, table, noise.narrow(0, learner, 1), 1}).tensor;
    EXPECT_NEAR(losses[learner].item<double>(), loss.item<double>(), 1e-5);
    const auto expected = torch::autograd::grad({loss.sum()}, own);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(at::allclose(gradients[i][learner], expected[i], 1e-4, 1e-6))
          << learner << " " << model->parameters().tensors()[i].name;
    }
  }
}

}  // namespace
}  // namespace train::models
