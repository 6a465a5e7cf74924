#include "train/models/layers/lstm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <vector>

#include "tests/train/models/layers/here.h"

namespace train::models::layers {
namespace {

struct Case {
  std::int64_t learners;
  std::int64_t batch;  // of each
  std::int64_t steps;
  std::int64_t inputs;
  std::int64_t hidden;
};

at::Tensor some_values(at::IntArrayRef shape, double rate) {
  const at::Tensor count = at::arange(c10::multiply_integers(shape), at::kDouble);
  return at::sin(count * count * rate).to(at::kFloat).view(shape);
}

/// Of both directions: input, bias, recurrent; input, bias, recurrent.
std::vector<at::Tensor> some_weights(const Case& given) {
  const std::int64_t gates = 4 * given.hidden;
  std::vector<at::Tensor> weights;
  for (const double rate : {0.37, 0.53}) {
    weights.push_back(some_values({given.inputs, gates}, rate) * 0.5);
    weights.push_back(some_values({gates}, rate + 0.1) * 0.5);
    weights.push_back(some_values({given.hidden, gates}, rate + 0.2) * 0.4);
  }
  return weights;
}

std::array<LstmWeights, 2> in_pairs(const std::vector<at::Tensor>& weights) {
  return {LstmWeights{weights[0], weights[1], weights[2]},
          LstmWeights{weights[3], weights[4], weights[5]}};
}

at::Tensor by_torch(const at::Tensor& x, const std::vector<at::Tensor>& weights) {
  std::vector<at::Tensor> theirs;
  for (const std::size_t first : {0U, 3U}) {
    theirs.insert(theirs.end(), {weights[first].t(), weights[first + 2].t(), weights[first + 1],
                                 at::zeros_like(weights[first + 1])});
  }
  const at::Tensor start = at::zeros({2, x.size(0), weights[2].size(0)});
  return std::get<0>(at::lstm(x, {start, start}, theirs, true, 1, 0.0, true, true, true));
}

double distance(const at::Tensor& got, const at::Tensor& expected) {
  return ((got.cpu() - expected).norm() / expected.norm().clamp_min(1e-30)).item<double>();
}

constexpr double kClose = 1e-5;

class LstmTest : public testing::TestWithParam<Case> {};

/// Each learner's samples alone through torch's own on the host, against all of them through ours.
TEST_P(LstmTest, IsTorchsForEachLearner) {
  // Products are in TF32 on a GPU where the engine, or the environment, turns that on.
  at::globalContext().setAllowTF32CuBLAS(false);
  const Case& given = GetParam();
  const at::Tensor x =
      some_values({given.learners * given.batch, given.steps, given.inputs}, 0.011);
  const at::Tensor slope =
      some_values({given.learners * given.batch, given.steps, 2 * given.hidden}, 0.017);
  const std::vector<at::Tensor> weights = some_weights(given);

  std::vector<at::Tensor> own;
  for (const at::Tensor& weight : weights) {
    at::Tensor leaf = weight.to(here());
    if (given.learners > 1) {
      std::vector<std::int64_t> shape = weight.sizes().vec();
      shape.insert(shape.begin(), given.learners);
      leaf = leaf.unsqueeze(0).expand(shape);
    }
    own.push_back(leaf.detach().set_requires_grad(true));
  }
  const at::Tensor own_x = x.to(here()).set_requires_grad(true);
  const at::Tensor out = lstm_both_ways(own_x, in_pairs(own));
  ASSERT_EQ(out.sizes(), slope.sizes());
  std::vector<at::Tensor> asked = own;
  asked.push_back(own_x);
  const auto got = torch::autograd::grad({out}, asked, {slope.to(here())});

  for (std::int64_t learner = 0; learner < given.learners; ++learner) {
    const auto part = [&](const at::Tensor& all) {
      return all.narrow(0, learner * given.batch, given.batch);
    };
    std::vector<at::Tensor> theirs;
    for (const at::Tensor& weight : weights) {
      theirs.push_back(weight.clone().set_requires_grad(true));
    }
    const at::Tensor their_x = part(x).clone().set_requires_grad(true);
    const at::Tensor expected = by_torch(their_x, theirs);
    EXPECT_LT(distance(part(out.detach()), expected.detach()), kClose);
    theirs.push_back(their_x);
    const auto slopes = torch::autograd::grad({expected}, theirs, {part(slope).contiguous()});
    for (std::size_t i = 0; i < own.size(); ++i) {
      const at::Tensor one = given.learners > 1 ? got[i][learner] : got[i];
      if (given.steps == 1 && i % 3 == 2) {  // nothing came from a step before
        EXPECT_EQ(one.abs().max().item<float>(), 0);
        continue;
      }
      EXPECT_LT(distance(one, slopes[i]), kClose) << "learner " << learner << " weight " << i;
    }
    EXPECT_LT(distance(part(got.back()), slopes.back()), kClose) << learner;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LstmTest,
                         testing::Values(Case{1, 3, 7, 5, 4}, Case{1, 1, 1, 1, 1},
                                         Case{3, 2, 6, 5, 4}, Case{2, 1, 1, 3, 2},
                                         Case{4, 3, 20, 24, 33}));

}  // namespace
}  // namespace train::models::layers
