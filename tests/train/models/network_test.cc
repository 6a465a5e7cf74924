#include "train/models/network.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "tests/train/models/picked.h"

namespace train::models {
namespace {

std::unique_ptr<Model> model() {
  NetworkOptions options;
  options.input = {1, 8, 8};
  options.layers = {convolution("conv1", 4, 3),
                    relu_pool(),
                    convolution("conv2", 3, 3),
                    relu_pool(),
                    linear("fc1", 6),
                    relu(),
                    linear("fc2", 5)};
  options.batch = 3;
  return make_network(options);
}

std::unique_ptr<Classifier> make(std::uint64_t seed = 11) {
  const auto samples = some_samples({1, 8, 8}, 16, 5);
  return make_classifier({}, model(), samples, samples, {seed, 3, 1});
}

TEST(NetworkTest, DescribesItsTensors) {
  const auto network = model();
  const auto tensors = network->tensors();
  ASSERT_EQ(tensors.size(), 8U);
  EXPECT_EQ(tensors[0].name, "conv1.weight");
  EXPECT_EQ(tensors[0].shape, (std::vector<std::int64_t>{3, 3, 1, 4}));
  EXPECT_EQ(tensors[0].flops_per_gradient, 2 * 64 * 3);
  EXPECT_EQ(tensors[2].flops_per_gradient, 2 * 16 * 3);
  EXPECT_EQ(tensors[4].shape, (std::vector<std::int64_t>{12, 6}));
  EXPECT_EQ(tensors[4].flops_per_gradient, 2 * 3);
  EXPECT_EQ(tensors[7].name, "fc2.bias");
  EXPECT_EQ(network->elements(), 36 + 4 + 108 + 3 + 72 + 6 + 30 + 5);
  EXPECT_TRUE(network->figures().empty());
}

// Every element at its place of the flat array.
TEST(NetworkTest, GradientIsTheSlopeOfTheLoss) {
  const auto network = make();
  EXPECT_LT(worst_slope(*network, first_picks(3), 3e-4F), 3e-2);  // hardly a ReLU switches here
}

TEST(NetworkTest, FollowsItsWeights) {
  const auto network = make();
  const auto picks = first_picks(3);
  const double before = network->score(picks).loss;
  EXPECT_NEAR(before, 3 * gradient_of(*network, picks).loss, 1e-5);
  for (float& weight : network->weights()) weight = 0;
  network->weights_written({});
  EXPECT_NE(before, network->score(picks).loss);
  EXPECT_NEAR(network->score(picks).loss, 3 * std::log(5.0), 1e-5);
}

TEST(NetworkTest, ManyThreadsGetTheBitsOfOne) {
  const auto network = make();
  const auto picks = first_picks(16);
  const auto expected = gradient_of(*network, picks).values;
  std::vector<int> equal(8);
  {
    std::vector<std::jthread> threads;
    for (int& result : equal) {
      threads.emplace_back([&] {
        result = 1;
        for (int i = 0; i < 20; ++i) result &= gradient_of(*network, picks).values == expected;
      });
    }
  }
  EXPECT_EQ(equal, std::vector<int>(8, 1));
}

TEST(NetworkTest, SeedsMakeWeights) {
  const auto weights = [](Classifier& network) {
    return std::vector<float>(network.weights().begin(), network.weights().end());
  };
  EXPECT_EQ(weights(*make()), weights(*make()));
  EXPECT_NE(weights(*make()), weights(*make(12)));
}

}  // namespace
}  // namespace train::models
