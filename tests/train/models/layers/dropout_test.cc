#include "train/models/layers/dropout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include "tests/train/models/layers/here.h"

namespace train::models::layers {
namespace {

constexpr std::int64_t kElements = 5000;

at::Tensor noise(std::int32_t value) {
  return at::full({1}, value, at::TensorOptions(here()).dtype(at::kInt));
}

/// What comes of ones.
at::Tensor factors(Dropout& dropout, std::int64_t elements = kElements) {
  return dropout(at::ones({elements}, here())).cpu();
}

/// Of the element `i` in the draw and byte of a number, stated apart.
std::uint32_t byte_of(std::int64_t i, std::int32_t noise, std::uint32_t draw, int byte) {
  std::int32_t bits = static_cast<std::int32_t>(
      static_cast<std::uint32_t>(i) + static_cast<std::uint32_t>(noise) + 0x3c6ef373U * draw);
  const auto times = [](std::int32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) * b);
  };
  bits = times(bits ^ (bits >> 16), 0x7feb352dU);
  bits = times(bits ^ (bits >> 16), 0x2c1b3c6dU);
  bits ^= bits >> 15;
  return static_cast<std::uint32_t>(bits) >> (8 * byte) & 0xffU;
}

TEST(DropoutTest, DropsWhatTheBytesOfAHashSay) {
  for (const std::int32_t number : {0, 17, -123456789}) {
    Dropout dropout(noise(number), 0.25);
    for (int call = 0; call < 6; ++call) {
      const at::Tensor out = factors(dropout);
      const float* const got = out.const_data_ptr<float>();
      for (std::int64_t i = 0; i < kElements; ++i) {
        const bool kept =
            byte_of(i, number, static_cast<std::uint32_t>(call / 4 + 1), call % 4) >= 64;
        ASSERT_EQ(got[i], kept ? 256.0F / 192 : 0.0F) << number << " " << call << " " << i;
      }
    }
  }
}

TEST(DropoutTest, LearnersAreDroppedByTheirOwnNoise) {
  const at::Tensor both = at::tensor({17, -4}, at::kInt).to(here());
  Dropout dropout(both, 0.25);
  for (int call = 0; call < 5; ++call) {
    const at::Tensor out = factors(dropout);
    for (const std::int64_t learner : {0, 1}) {
      const std::int64_t half = kElements / 2;
      const float* const got = out.const_data_ptr<float>() + learner * half;
      for (std::int64_t i = 0; i < half; ++i) {
        const bool kept = byte_of(i, learner == 0 ? 17 : -4,
                                  static_cast<std::uint32_t>(call / 4 + 1), call % 4) >= 64;
        ASSERT_EQ(got[i], kept ? 256.0F / 192 : 0.0F) << call << " " << learner << " " << i;
      }
    }
  }
}

TEST(DropoutTest, AnotherSizeIsDrawnAnew) {
  Dropout dropout(noise(3), 0.5);
  const at::Tensor first = factors(dropout);
  const at::Tensor longer = factors(dropout, kElements + 1).slice(0, 0, kElements);
  EXPECT_FALSE(at::equal(first, longer));
  const std::uint32_t second = byte_of(7, 3, 2, 1);
  EXPECT_EQ(longer[7].item<float>(), second >= 128 ? 2.0F : 0.0F);
}

TEST(DropoutTest, DropsTheSameOfTheGradient) {
  Dropout dropout(noise(5), 0.3);
  const at::Tensor x = at::arange(1.0, 1.0 + kElements, at::TensorOptions(here()).dtype(at::kFloat))
                           .view({50, 100})
                           .t()
                           .set_requires_grad(true);
  const at::Tensor y = dropout(x);
  const at::Tensor share = at::linspace(-1, 1, kElements, here()).view({100, 50});
  const at::Tensor grad = torch::autograd::grad({(y * share).sum()}, {x})[0];
  EXPECT_TRUE(at::allclose(grad, y.detach() / x.detach() * share, 1e-5, 1e-6));
}

TEST(DropoutTest, DoesNothingWithoutNoiseOrShare) {
  const at::Tensor x = at::ones({8}, here());
  EXPECT_TRUE(at::equal(Dropout({}, 0.5)(x), x));
  EXPECT_TRUE(at::equal(Dropout(noise(1), 0)(x), x));
}

}  // namespace
}  // namespace train::models::layers
