#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <vector>

#include "train/models/recogniser.h"
#include "train/models/sequence_pass.h"
#include "train/models/transformer.h"

/// The mini-batches of several learners as one, against each alone.
namespace train::models {
namespace {

constexpr std::int64_t kLearners = 3;
constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kSamples = kLearners * kBatch;

struct Case {
  const char* name;
  std::unique_ptr<SequenceModel> model;
  at::Tensor rows;   // of all learners
  at::Tensor table;  // what rows refer to
};

/// Sentences of several lengths, on both sides.
at::Tensor sentences(std::int64_t length) {
  const at::Tensor rows = at::zeros({kSamples, 2 * length + 1}, at::kLong);
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const std::int64_t words = 1 + (i * 2 + 1) % (length - 1);
    for (std::int64_t w = 0; w < words; ++w) {
      rows[i][w] = 3 + (i * 5 + w * 3) % 8;
      rows[i][length + 1 + w] = 3 + (i * 7 + w) % 8;
    }
    rows[i][words] = TransformerOptions::kEnd;
    rows[i][length] = TransformerOptions::kBegin;
    rows[i][length + 1 + words] = TransformerOptions::kEnd;
  }
  return rows;
}

Case transformer() {
  constexpr std::int64_t kLength = 5;
  TransformerOptions options;
  options.vocabulary = 11;
  options.width = 8;
  options.heads = 2;
  options.inner = 12;
  options.layers = 2;
  options.longest = kLength + 1;
  options.dropout = 0.25;
  options.batch = kBatch;
  const at::Tensor table = at::tensor(options.positions()).view({options.longest, options.width});
  return {"transformer", make_transformer(options), sentences(kLength), table};
}

Case recogniser() {
  constexpr std::int64_t kFrames = 20;  // of which strings are made
  RecogniserOptions options;
  options.bands = 2;
  options.frames = 12;
  options.together = 2;
  options.labels = 2;
  options.classes = 4;
  options.hidden = 5;
  options.layers = 2;
  options.batch = kBatch;
  const at::Tensor count = at::arange(kSamples * options.width(), at::kLong);
  const at::Tensor rows = (count * count).remainder(kFrames).view({kSamples, options.width()});
  rows.narrow(1, options.frames, options.labels).remainder_(options.classes - 1).add_(1);
  rows[1][options.frames + 1] = 0;  // one label alone
  const at::Tensor table = at::sin(at::arange(kFrames * options.bands, at::kFloat).square());
  return {"recogniser", make_recogniser(options), rows, table.view({kFrames, options.bands})};
}

class SequenceLearnersTest : public testing::TestWithParam<Case (*)()> {};

TEST_P(SequenceLearnersTest, EachGetsItsOwnLossAndGradient) {
  const Case given = GetParam()();
  const SequenceModel& model = *given.model;
  std::vector<float> values(static_cast<std::size_t>(model.parameters().elements()));
  model.parameters().initialise(3, values);
  std::vector<at::Tensor> own;
  std::vector<at::Tensor> shared;
  float* next = values.data();
  for (const auto& tensor : model.parameters().tensors()) {
    own.push_back(at::from_blob(next, tensor.shape, at::kFloat).set_requires_grad(true));
    std::vector<std::int64_t> shape = tensor.shape;
    shape.insert(shape.begin(), kLearners);
    shared.push_back(own.back().detach().unsqueeze(0).expand(shape).set_requires_grad(true));
    next += tensor.elements();
  }
  const at::Tensor noise = at::tensor({5, -7, 123456}, at::kInt);
  const at::Tensor losses = model.loss({given.rows, shared, given.table, noise, kLearners}).tensor;
  ASSERT_EQ(losses.sizes(), at::IntArrayRef({kLearners}));
  const auto gradients = torch::autograd::grad({losses.sum()}, shared);

  for (std::int64_t learner = 0; learner < kLearners; ++learner) {
    const at::Tensor part = given.rows.narrow(0, learner * kBatch, kBatch);
    const at::Tensor loss =
        model.loss({part, own, given.table, noise.narrow(0, learner, 1), 1}).tensor;
    EXPECT_NEAR(losses[learner].item<double>(), loss.item<double>(), 1e-5);
    const auto expected = torch::autograd::grad({loss.sum()}, own);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(at::allclose(gradients[i][learner], expected[i], 1e-4, 1e-6))
          << learner << " " << model.parameters().tensors()[i].name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SequenceLearnersTest, testing::Values(transformer, recogniser),
                         [](const auto& given) { return std::string(given.param().name); });

}  // namespace
}  // namespace train::models
