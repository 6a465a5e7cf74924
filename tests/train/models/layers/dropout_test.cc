#include "train/models/layers/dropout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include "tests/train/models/layers/here.h"

namespace train::models::layers {
namespace {

constexpr std::int64_t kSamples = 10;
constexpr std::int64_t kPlaces = 25;
constexpr std::int64_t kChannels = 20;

at::Tensor noise(std::int32_t value) {
  return at::full({1}, value, at::TensorOptions(here()).dtype(at::kInt));
}

/// What comes of ones.
at::Tensor factors(Dropout& dropout, std::int64_t places = kPlaces) {
  return dropout(at::ones({kSamples, places, kChannels}, here())).cpu();
}

/// The number of an element of what factors() gives, among those of its learner's samples.
std::int64_t number_of(std::int64_t i, std::int64_t samples = kSamples) {
  const std::int64_t sample = i / (kPlaces * kChannels) % samples;
  return sample * 1024 * kChannels + i % (kPlaces * kChannels);
}

/// Of the element number `i` in the draw and byte of a number, stated apart.
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
      for (std::int64_t i = 0; i < out.numel(); ++i) {
        const bool kept =
            byte_of(number_of(i), number, static_cast<std::uint32_t>(call / 4 + 1), call % 4) >= 64;
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
      const std::int64_t half = out.numel() / 2;
      const float* const got = out.const_data_ptr<float>() + learner * half;
      for (std::int64_t i = 0; i < half; ++i) {
        const bool kept = byte_of(number_of(i, kSamples / 2), learner == 0 ? 17 : -4,
                                  static_cast<std::uint32_t>(call / 4 + 1), call % 4) >= 64;
        ASSERT_EQ(got[i], kept ? 256.0F / 192 : 0.0F) << call << " " << learner << " " << i;
      }
    }
  }
}

// A learner's samples are filled up to the longest, which may be another learner's.
TEST(DropoutTest, PlacesThatFillUpChangeNothing) {
  Dropout dropout(noise(3), 0.5);
  Dropout longer(noise(3), 0.5);
  for (int call = 0; call < 6; ++call) {
    // In one of them the length changes from call to call.
    const std::int64_t places = kPlaces + call * call % 3;
    EXPECT_TRUE(at::equal(factors(dropout), factors(longer, places).narrow(1, 0, kPlaces))) << call;
  }
}

TEST(DropoutTest, DropsTheSameOfTheGradient) {
  Dropout dropout(noise(5), 0.3);
  const at::Tensor x = at::arange(1.0, 5001.0, at::TensorOptions(here()).dtype(at::kFloat))
                           .view({10, 50, 10})
                           .transpose(1, 2)
                           .set_requires_grad(true);
  const at::Tensor y = dropout(x);
  const at::Tensor share = at::linspace(-1, 1, 5000, here()).view({10, 10, 50});
  const at::Tensor grad = torch::autograd::grad({(y * share).sum()}, {x})[0];
  EXPECT_TRUE(at::allclose(grad, y.detach() / x.detach() * share, 1e-5, 1e-6));
}

TEST(DropoutTest, DoesNothingWithoutNoiseOrShare) {
  const at::Tensor x = at::ones({2, 2, 2}, here());
  EXPECT_TRUE(at::equal(Dropout({}, 0.5)(x), x));
  EXPECT_TRUE(at::equal(Dropout(noise(1), 0)(x), x));
}

}  // namespace
}  // namespace train::models::layers
