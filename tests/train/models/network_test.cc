#include "train/models/network.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "scalecom/core/aligned_array.h"

namespace train::models {
namespace {

Network::Options options() {
  Network::Options options;
  options.input = {1, 8, 8};
  options.layers = {convolution("conv1", 4, 3),
                    relu_pool(),
                    convolution("conv2", 3, 3),
                    relu_pool(),
                    linear("fc1", 6),
                    relu(),
                    linear("fc2", 5)};
  options.batch = 3;
  options.seed = 11;
  return options;
}

struct Batch {
  explicit Batch(std::int64_t samples) : inputs(samples * 64) {
    for (std::int64_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = std::sin(static_cast<float>(i * i % 977));
    }
    for (std::int64_t i = 0; i < samples; ++i) labels.push_back(i % 5);
  }
  std::span<const float> all() const { return {inputs.data(), labels.size() * 64}; }

  scalecom::core::AlignedArray<float> inputs;
  std::vector<std::int64_t> labels;
};

std::vector<float> gradient_of(const Network& network, const Batch& batch, std::size_t elements) {
  std::vector<float> gradient(elements);
  network.gradient(batch.all(), batch.labels, gradient);
  return gradient;
}

TEST(NetworkTest, DescribesItsTensors) {
  Network network(options());
  const auto tensors = network.tensors();
  ASSERT_EQ(tensors.size(), 8U);
  EXPECT_EQ(tensors[0].name, "conv1.weight");
  EXPECT_EQ(tensors[0].shape, (std::vector<std::int64_t>{3, 3, 1, 4}));
  EXPECT_EQ(tensors[0].flops_per_gradient, 2 * 64 * 3);
  EXPECT_EQ(tensors[2].flops_per_gradient, 2 * 16 * 3);
  EXPECT_EQ(tensors[4].shape, (std::vector<std::int64_t>{12, 6}));
  EXPECT_EQ(tensors[4].flops_per_gradient, 2 * 3);
  EXPECT_EQ(tensors[7].name, "fc2.bias");
  EXPECT_EQ(network.weights().size(), 36U + 4 + 108 + 3 + 72 + 6 + 30 + 5);
}

// Every element at its place of the flat array: against differences of the loss.
TEST(NetworkTest, GradientIsTheSlopeOfTheLoss) {
  Network network(options());
  const Batch batch(3);
  const auto weights = network.weights();
  const auto gradient = gradient_of(network, batch, weights.size());
  const auto loss = [&] { return network.score(batch.all(), batch.labels).loss / 3; };
  constexpr float kStep = 3e-4F;  // within which no ReLU switches here
  double worst = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float kept = weights[i];
    weights[i] = kept + kStep;
    const double above = loss();
    weights[i] = kept - kStep;
    const double below = loss();
    weights[i] = kept;
    worst = std::max(worst, std::abs((above - below) / (2 * kStep) - gradient[i]));
  }
  EXPECT_LT(worst, 2e-2);
}

TEST(NetworkTest, FollowsItsWeights) {
  Network network(options());
  const Batch batch(3);
  const double before = network.score(batch.all(), batch.labels).loss;
  for (float& weight : network.weights()) weight = 0;
  EXPECT_NE(before, network.score(batch.all(), batch.labels).loss);
  EXPECT_NEAR(network.score(batch.all(), batch.labels).loss, 3 * std::log(5.0), 1e-5);
}

TEST(NetworkTest, ManyThreadsGetTheBitsOfOne) {
  Network network(options());
  const Batch batch(16);
  const std::size_t elements = network.weights().size();
  const auto expected = gradient_of(network, batch, elements);
  std::vector<int> equal(8);
  {
    std::vector<std::jthread> threads;
    for (int& result : equal) {
      threads.emplace_back([&] {
        result = 1;
        for (int i = 0; i < 20; ++i) result &= gradient_of(network, batch, elements) == expected;
      });
    }
  }
  EXPECT_EQ(equal, std::vector<int>(8, 1));
}

TEST(NetworkTest, SeedsMakeWeights) {
  Network one(options());
  Network same(options());
  auto other_options = options();
  other_options.seed = 12;
  Network other(other_options);
  const std::vector<float> weights(one.weights().begin(), one.weights().end());
  EXPECT_TRUE(std::equal(weights.begin(), weights.end(), same.weights().begin()));
  EXPECT_FALSE(std::equal(weights.begin(), weights.end(), other.weights().begin()));
}

}  // namespace
}  // namespace train::models
