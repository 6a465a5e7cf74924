#include "train/models/layers/token_table.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include "tests/train/models/layers/here.h"

namespace train::models::layers {
namespace {

constexpr std::int64_t kNone = 0;

struct Case {
  std::int64_t rows;
  std::int64_t width;
  std::int64_t samples;
  std::int64_t length;
};

at::Tensor some_tokens(const Case& given) {
  const at::Tensor count = at::arange(given.samples * given.length, at::kLong);
  return (count * count * 7).remainder(given.rows).view({given.samples, given.length});
}

at::Tensor some_values(at::IntArrayRef shape) {
  const at::Tensor count = at::arange(c10::multiply_integers(shape), at::kFloat);
  return at::sin(count * 0.7).view(shape);
}

class TokenTableTest : public testing::TestWithParam<Case> {};

TEST_P(TokenTableTest, GivesRowsAndTakesTheirGradients) {
  const Case& given = GetParam();
  const at::Tensor tokens = some_tokens(given);
  const at::Tensor table = some_values({given.rows, given.width});
  const at::Tensor own = table.to(here()).set_requires_grad(true);
  const at::Tensor out = look_up(own, tokens.to(here()), kNone);
  const at::Tensor grad = some_values({given.samples, given.length, given.width}) + 0.25;
  const at::Tensor got =
      torch::autograd::grad({out}, {own}, {grad.to(here())})[0].cpu().contiguous();

  const at::Tensor flat = tokens.flatten();
  at::Tensor expected = at::zeros({given.rows, given.width});
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    const auto token = flat[i].item<std::int64_t>();
    ASSERT_TRUE(at::equal(out.detach().cpu().flatten(0, 1)[i], table[token]));
    if (token != kNone) expected[token] += grad.flatten(0, 1)[i];
  }
  EXPECT_TRUE(at::equal(got[kNone], at::zeros({given.width})));
  EXPECT_TRUE(at::allclose(got, expected, 1e-5, 1e-5));
}

TEST(TokenTableTest, EachLearnersTokensAreItsOwn) {
  const std::int64_t learners = 3;
  const Case given{23, 40, learners * 2, 30};
  const at::Tensor tokens = some_tokens(given);
  const at::Tensor table = some_values({given.rows, given.width}).to(here());
  const at::Tensor all = table.unsqueeze(0).expand({learners, given.rows, given.width});
  const at::Tensor own = all.detach().set_requires_grad(true);
  const at::Tensor out = look_up(own, tokens.to(here()), kNone);
  const at::Tensor grad = some_values({given.samples, given.length, given.width}).to(here());
  const at::Tensor got = torch::autograd::grad({out}, {own}, {grad})[0];
  ASSERT_EQ(got.sizes(), all.sizes());
  for (std::int64_t i = 0; i < learners; ++i) {
    const at::Tensor one = table.detach().clone().set_requires_grad(true);
    const at::Tensor part = look_up(one, tokens.narrow(0, 2 * i, 2).to(here()), kNone);
    EXPECT_TRUE(at::equal(out.detach().narrow(0, 2 * i, 2), part.detach()));
    const at::Tensor expected =
        torch::autograd::grad({part}, {one}, {grad.narrow(0, 2 * i, 2).contiguous()})[0];
    EXPECT_TRUE(at::equal(got[i], expected)) << i;
  }
}

// One tile of tokens and columns, and more; rows that no token takes.
INSTANTIATE_TEST_SUITE_P(Shapes, TokenTableTest,
                         testing::Values(Case{40, 32, 4, 9}, Case{9, 1, 1, 1},
                                         Case{131, 256, 3, 20}, Case{17, 300, 30, 40}));

}  // namespace
}  // namespace train::models::layers
